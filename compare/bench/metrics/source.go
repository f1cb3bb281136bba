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

// record is one thing found in an output: a line of text, or an object with
// what stood before it on its line already taken off.
type record struct {
	line int    // counted from 1
	raw  string // without color codes; of an object its beginning, where asked for
	text string // of a line, and without what a launcher or logger put before it
	doc  *object
	rank int  // the rank a launcher's prefix names; −1 without one
	open bool // the output ends inside this line

	// A line "Label:   12.5" taken apart, see labeled; label is "" for others.
	label string
	value float64
}

// source streams the records of an output. Carriage returns end a line as
// newlines do, which takes progress bars apart from the results they overwrite.
type source struct {
	in *reader
	// raw keeps the text of objects too, for the rules of users.
	raw bool
	// cut is the first object that did not parse, for the error message when
	// nothing else was found.
	cut  error
	long int // text lines longer than maxLine
}

func newSource(r io.Reader, raw bool) *source {
	return &source{in: &reader{Reader: bufio.NewReaderSize(r, maxLine), line: 1}, raw: raw}
}

// reader counts what is read of an output.
type reader struct {
	*bufio.Reader
	line int   // of the next byte, from 1
	read int64 // bytes before it
}

// passed counts one byte that was read.
func (in *reader) passed(c byte) {
	in.read++
	if c == '\n' {
		in.line++
	}
}

// discard reads over bytes that were peeked at and hold no newline.
func (in *reader) discard(n int) error {
	_, err := in.Discard(n)
	in.read += int64(n)
	return err
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
		if rest[0] == ' ' || rest[0] == '\t' {
			length++
			continue
		}
		var m [][]byte
		switch c := rest[0]; {
		case bytes.HasPrefix(rest, []byte("[{")): // a list of objects on one line
			length++
			continue
		case c == '[':
			if m = rankPrefix.FindSubmatch(rest); m == nil {
				m = logPrefix.FindSubmatch(rest)
			}
		case c == '(' || c >= '0' && c <= '9':
			m = rankPrefix.FindSubmatch(rest)
		case c != 0x1b:
			return length, rank
		}
		if m == nil {
			if at := color.FindIndex(rest); at != nil && at[0] == 0 {
				length += at[1]
				continue
			}
			break
		}
		length += len(m[0])
		if r := prefixRank(m); r >= 0 {
			rank = r
		}
	}
	return length, rank
}

// each offers every record of the output.
func (s *source) each(offer func(record)) error {
	if err := s.skipMark(); err != nil {
		return err
	}
	for {
		rec, err := s.next()
		switch {
		case err == nil:
			offer(rec)
		case err == io.EOF:
			return nil
		default:
			return &input.Error{Position: "line " + strconv.Itoa(s.in.line), Err: err}
		}
	}
}

// prefixBytes is how far into a line the brace of an object may stand.
const prefixBytes = 512

// next returns the next record, or io.EOF.
func (s *source) next() (record, error) {
	for {
		head, err := s.in.Peek(prefixBytes)
		if len(head) == 0 {
			return record{}, err
		}
		if end := bytes.IndexAny(head, "\r\n"); end >= 0 {
			head = head[:end]
		}
		if bytes.IndexByte(head, '{') >= 0 {
			if at, rank := prefix(head); at < len(head) && head[at] == '{' {
				if rec, ok := s.object(at, rank); ok {
					return rec, nil
				}
				continue
			}
		}
		return s.textLine()
	}
}

// skipMark takes a byte order mark off the beginning of the output.
func (s *source) skipMark() error {
	head, _ := s.in.Peek(3)
	switch {
	case bytes.HasPrefix(head, []byte("\xef\xbb\xbf")):
		return s.in.discard(3)
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")):
		return &input.Error{Expected: "UTF-8", Found: "UTF-16", Try: "convert it with iconv -f utf-16 -t utf-8"}
	}
	return nil
}

// prefixRank is the number that a prefix's submatches hold; −1 without one.
func prefixRank(m [][]byte) int {
	for _, digits := range m[1:] {
		if len(digits) == 0 || len(digits) > 6 {
			continue
		}
		if rank, err := strconv.Atoi(string(digits)); err == nil {
			return rank
		}
	}
	return -1
}

// object reads the object that begins at bytes from here; not ok means it did
// not parse, and the source stands where reading goes on.
func (s *source) object(at, rank int) (record, bool) {
	if s.in.discard(at) != nil {
		return record{}, false
	}
	rec := record{line: s.in.line, rank: rank}
	text, began := s.rawText(), s.in.read
	var err error
	if rec.doc, err = decodeObject(s.in); err != nil {
		if s.cut == nil {
			s.cut = &input.Error{Position: "line " + strconv.Itoa(rec.line), Expected: "a whole JSON object",
				Found: "one that " + cutReason(err)}
		}
		return record{}, false
	}
	rec.raw = strings.ToValidUTF8(string(text[:min(int64(len(text)), s.in.read-began)]), "\uFFFD")
	if c, err := s.in.Peek(1); err == nil && c[0] == ',' {
		return rec, s.in.discard(1) == nil // between the objects of a list on one line
	}
	return rec, true
}

// rawText is a copy of what comes next, to the end of the line at least and
// maxLine at most; nil unless raw text is kept.
func (s *source) rawText() []byte {
	if !s.raw {
		return nil
	}
	ahead, _ := s.in.Peek(s.in.Buffered())
	end := bytes.IndexByte(ahead, '\n')
	if end < 0 || len(bytes.TrimSpace(ahead[:end])) < 2 { // longer than what is buffered, or over several lines
		ahead, _ = s.in.Peek(maxLine)
		end = len(ahead)
	}
	return bytes.Clone(ahead[:end])
}

// cutReason says why an object was not decoded.
func cutReason(err error) string {
	if errors.Is(err, errCut) {
		return err.Error()
	}
	return "does not parse: " + err.Error()
}

// textLine reads up to the next line end and keeps at most maxLine bytes.
func (s *source) textLine() (record, error) {
	rec := record{line: s.in.line, rank: -1}
	var kept []byte
	total := 0
	for {
		piece, err := s.in.Peek(max(1, s.in.Buffered()))
		if len(piece) == 0 {
			if err != io.EOF {
				return record{}, err
			}
			rec.open = true
			break
		}
		end := bytes.IndexAny(piece, "\r\n")
		if end >= 0 {
			piece = piece[:end+1]
		}
		total += len(piece)
		kept = append(kept, piece[:min(len(piece), maxLine-len(kept))]...)
		last := piece[len(piece)-1]
		if err := s.in.discard(len(piece)); err != nil {
			return record{}, err
		}
		if last == '\n' {
			s.in.line++
		}
		if end >= 0 {
			break
		}
	}
	if total > maxLine {
		s.long++
	}
	kept = bytes.TrimRight(kept, "\r\n")
	if bytes.IndexByte(kept, 0x1b) >= 0 {
		kept = color.ReplaceAll(kept, nil)
	}
	at := 0
	if at, rec.rank = prefix(kept[:min(len(kept), prefixBytes)]); at == len(kept) {
		at = 0 // a line of nothing but prefixes is text
	}
	rec.raw = string(kept)
	rec.text = rec.raw[at:]
	if !utf8.ValidString(rec.raw) {
		rec.raw, rec.text = strings.ToValidUTF8(rec.raw, "\uFFFD"), strings.ToValidUTF8(rec.text, "\uFFFD")
	}
	rec.label, rec.value = labeled(rec.text)
	return rec, nil
}
