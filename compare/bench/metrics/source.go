package metrics

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/moebalance/moebalance/router/input"
)

// source streams the documents of an output. Carriage returns end a line as
// newlines do, which takes progress bars apart from the results they overwrite.
type source struct {
	in *reader
	// cut is the first object that did not parse, for the error message when
	// nothing else was found.
	cut  error
	long int // text lines longer than maxLine
}

func newSource(r io.Reader) *source {
	back := &pushback{from: r}
	return &source{in: &reader{Reader: bufio.NewReaderSize(back, maxLine), back: back, line: 1}}
}

// pushback reads again what was given back, then the rest.
type pushback struct {
	from  io.Reader
	again []byte
}

func (p *pushback) Read(b []byte) (int, error) {
	if len(p.again) > 0 {
		n := copy(b, p.again)
		p.again = p.again[n:]
		return n, nil
	}
	return p.from.Read(b)
}

// reader counts the lines of an output, and keeps what was read since mark.
type reader struct {
	*bufio.Reader
	back   *pushback
	line   int // of the next byte, from 1
	marked bool
	seen   []byte // since mark, maxSeen bytes at most
	over   bool   // more were seen than are kept
}

// maxSeen bounds what of a broken object is read again.
const maxSeen = 1 << 20

func (in *reader) mark() { in.marked, in.seen, in.over = true, in.seen[:0], false }

// pass consumes bytes that were peeked at.
func (in *reader) pass(n int) {
	b, _ := in.Peek(n)
	in.line += bytes.Count(b, []byte("\n"))
	if in.over = in.over || in.marked && len(in.seen)+n > maxSeen; in.marked && !in.over {
		in.seen = append(in.seen, b...)
	}
	_, _ = in.Discard(len(b)) // which Peek has buffered
}

// giveBack returns to the second line since mark, if there is one: an object that is cut at the
// end of its line does not swallow the lines after it.
func (in *reader) giveBack() {
	in.marked = false
	end := bytes.IndexByte(in.seen, '\n')
	if end < 0 || in.over {
		return
	}
	rest := in.seen[end+1:]
	in.line -= bytes.Count(rest, []byte("\n"))
	ahead, _ := in.Peek(in.Buffered())
	in.back.again = bytes.Join([][]byte{rest, ahead, in.back.again}, nil)
	in.Reset(in.back)
}

// What may stand before a record: color codes, a launcher's rank ("0: " of
// srun, "[1,0]<stdout>:" of mpirun, "(Worker_TP0 pid=12) " of vLLM), and
// TensorRT-LLM's log head ("[11/20/2026-10:00:00] [TRT-LLM] [RANK 0] [I] ").
var (
	color      = regexp.MustCompile(`\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])`)
	rankPrefix = regexp.MustCompile(
		`^(?:(\d+): ?|\[\d+,(\d+)\](?:<std(?:out|err)>)?: ?|\((?:\w+ )*\w*?(\d+)? ?pid=\d+(?:, ip=[^)]*)?\) )`)
	logPrefix = regexp.MustCompile(
		`^(?:\[(?:\d[^\[\]{}]{0,40}|TRT-LLM|TensorRT-LLM|_torch|RANK (\d+)|I|W|E|F|V|INFO|WARNING|ERROR)\] ?)+`)
)

// prefix is the length of what stands before a record, and the rank it names;
// −1 without one.
func prefix(head []byte) (length, rank int) {
	rank = -1
	for length < len(head) {
		rest := head[length:]
		if rest[0] == ' ' || rest[0] == '\t' || bytes.HasPrefix(rest, []byte("[{")) { // a list of objects on one line
			length++
			continue
		}
		var m [][]byte
		switch c := rest[0]; {
		case c == '[':
			if m = rankPrefix.FindSubmatch(rest); m == nil {
				m = logPrefix.FindSubmatch(rest)
			}
		case c == '(' || c >= '0' && c <= '9':
			m = rankPrefix.FindSubmatch(rest)
		case c == 0x1b:
			if at := color.FindIndex(rest); at != nil && at[0] == 0 {
				m = [][]byte{rest[:at[1]]}
			}
		}
		if m == nil {
			break
		}
		length += len(m[0])
		for _, digits := range m[1:] {
			if r, err := strconv.Atoi(string(digits)); err == nil && len(digits) <= 6 {
				rank = r
				break
			}
		}
	}
	return length, rank
}

// each offers every document of the output.
func (s *source) each(offer func(*document)) error {
	head, _ := s.in.Peek(3)
	switch {
	case bytes.HasPrefix(head, []byte("\xef\xbb\xbf")): // a byte order mark
		s.in.pass(3)
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")):
		return &input.Error{Expected: "UTF-8", Found: "UTF-16", Try: "convert it with iconv -f utf-16 -t utf-8"}
	}
	for {
		doc, err := s.next()
		switch {
		case err == nil:
			offer(doc)
		case err == io.EOF:
			return nil
		default:
			return &input.Error{Position: "line " + strconv.Itoa(s.in.line), Err: err}
		}
	}
}

// prefixBytes is how far into a line the brace of an object may stand.
const prefixBytes = 512

// next returns the next document, or io.EOF.
func (s *source) next() (*document, error) {
	for {
		head, err := s.in.Peek(prefixBytes)
		if len(head) == 0 {
			return nil, err
		}
		if end := bytes.IndexAny(head, "\r\n"); end >= 0 {
			head = head[:end]
		}
		if bytes.IndexByte(head, '{') < 0 {
			return s.textLine()
		}
		at, rank := prefix(head)
		if at == len(head) || head[at] != '{' {
			return s.textLine()
		}
		if doc := s.object(at, rank); doc != nil {
			return doc, nil
		}
	}
}

// object reads the object that begins at bytes from here; nil means it did
// not parse, and the source stands where reading goes on.
func (s *source) object(at, rank int) *document {
	s.in.pass(at)
	s.in.mark()
	doc := newDocument(s.in.line, rank)
	if err := decodeObject(s.in, doc); err != nil {
		if s.cut == nil {
			reason := err.Error()
			if !errors.Is(err, errCut) {
				reason = "does not parse: " + reason
			}
			s.cut = &input.Error{Position: "line " + strconv.Itoa(doc.line), Expected: "a whole JSON object",
				Found: "one that " + reason}
		}
		s.in.giveBack()
		return nil
	}
	s.in.marked = false
	doc.raw = strings.ToValidUTF8(string(s.in.seen[:min(len(s.in.seen), maxLine)]), "\uFFFD")
	if c, err := s.in.Peek(1); err == nil && c[0] == ',' {
		s.in.pass(1) // between the objects of a list on one line
	}
	return doc
}

// textLine reads up to the next line end and keeps at most maxLine bytes.
func (s *source) textLine() (*document, error) {
	doc := newDocument(s.in.line, -1)
	var kept []byte
	total := 0
	for ended := false; !ended; {
		piece, err := s.in.Peek(max(1, s.in.Buffered()))
		if len(piece) == 0 {
			if err != io.EOF {
				return nil, err
			}
			doc.open = true
			break
		}
		if end := bytes.IndexAny(piece, "\r\n"); end >= 0 {
			piece, ended = piece[:end+1], true
		}
		total += len(piece)
		kept = append(kept, piece[:min(len(piece), maxLine-len(kept))]...)
		s.in.pass(len(piece))
	}
	if total > maxLine {
		s.long++
	}
	kept = color.ReplaceAll(bytes.TrimRight(kept, "\r\n"), nil)
	at := 0
	if at, doc.rank = prefix(kept[:min(len(kept), prefixBytes)]); at == len(kept) {
		at = 0 // a line of nothing but prefixes is text
	}
	doc.raw, doc.text = string(kept), string(kept[at:])
	if !utf8.ValidString(doc.raw) {
		doc.raw, doc.text = strings.ToValidUTF8(doc.raw, "\uFFFD"), strings.ToValidUTF8(doc.text, "\uFFFD")
	}
	if label, v := labeled(doc.text); label != "" {
		doc.set(label, v)
	}
	return doc, nil
}
