package metrics

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/router/input"
)

// source is an output as a window: text[at:] is what is read next, text[:at] what was read of the
// document at hand. Carriage returns end a line as newlines do, which takes progress bars apart from
// the results they overwrite.
type source struct {
	from io.Reader
	text []byte
	at   int
	line int    // of text[0], from 1
	lost bool   // the document is longer than maxSeen: its beginning left the window
	head []byte // what then is shown of it
	err  error  // why nothing more comes

	cut  error // the first object that did not parse, for the message when nothing else was found
	long int   // text lines longer than maxLine
}

// maxSeen bounds what of a broken object is read again, prefixBytes how far into a line the brace of an
// object may stand.
const (
	maxSeen     = 1 << 20
	prefixBytes = 512
)

// fill reads more; false at the end.
func (s *source) fill() bool {
	if s.err == nil && s.at > maxSeen {
		if !s.lost {
			s.head = bytes.Clone(s.text[:maxLine])
		}
		s.lost = true
		s.forget()
	}
	for s.err == nil {
		if cap(s.text)-len(s.text) < maxLine/2 {
			s.text = append(make([]byte, 0, max(2*len(s.text), 2*maxLine)), s.text...)
		}
		n, err := s.from.Read(s.text[len(s.text):cap(s.text)])
		s.text, s.err = s.text[:len(s.text)+n], err
		if n > 0 {
			return true
		}
	}
	return false
}

// forget drops what was read.
func (s *source) forget() {
	s.line += bytes.Count(s.text[:s.at], []byte("\n"))
	s.text, s.at = s.text[s.at:], 0
}

// What may stand before a record: color codes, a launcher's rank ("0: " of srun, "[1,0]<stdout>:" of
// mpirun, "(Worker_TP0 pid=12) " of vLLM), and the head of a log line, which may name the rank
// ("[11/20/2026-10:00:00] [TRT-LLM] [RANK 0] [I] ", SGLang's "[2026-11-20 10:00:00 DP1 TP1] ").
var (
	color      = regexp.MustCompile(`\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])`)
	rankPrefix = regexp.MustCompile(
		`^(?:(\d+): ?|\[\d+,(\d+)\](?:<std(?:out|err)>)?: ?|\((?:\w+ )*\w*?(\d+)? ?pid=\d+(?:, ip=[^)]*)?\) )`)
	logPrefix = regexp.MustCompile(`^(?:\[(?:\d[^\[\]{}]{0,40}?(?: [DT]P(\d+)[^\[\]{}]{0,20})?|TRT-LLM|TensorRT-LLM|` +
		`_torch|RANK (\d+)|I|W|E|F|V|INFO|WARNING|ERROR)\] ?)+`)
)

// prefix is the length of what stands before a record, and the rank it names; −1 without one.
func prefix(head []byte) (length, rank int) {
	rank = -1
	for length < len(head) {
		rest := head[length:]
		var m [][]byte
		switch c := rest[0]; {
		case c == ' ' || c == '\t' || bytes.HasPrefix(rest, []byte("[{")): // a list of objects on one line
			m = [][]byte{rest[:1]}
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
	s.line = 1
	s.fill()
	switch {
	case bytes.HasPrefix(s.text, []byte("\xef\xbb\xbf")): // a byte order mark
		s.at = 3
	case bytes.HasPrefix(s.text, []byte("\xff\xfe")), bytes.HasPrefix(s.text, []byte("\xfe\xff")):
		return &input.Error{Expected: "UTF-8", Found: "UTF-16", Try: "convert it with iconv -f utf-16 -t utf-8"}
	}
	for {
		s.forget()
		for len(s.text) < prefixBytes && s.fill() {
		}
		switch {
		case len(s.text) == 0 && s.err == io.EOF:
			return nil
		case len(s.text) == 0:
			return &input.Error{Position: "line " + strconv.Itoa(s.line), Err: s.err}
		}
		if doc := s.next(); doc != nil {
			offer(doc)
		}
	}
}

// next is the next document; nil where an object did not parse.
func (s *source) next() *document {
	head := s.text[:min(len(s.text), prefixBytes)]
	if end := bytes.IndexAny(head, "\r\n"); end >= 0 {
		head = head[:end]
	}
	if bytes.IndexByte(head, '{') >= 0 {
		if at, rank := prefix(head); at < len(head) && head[at] == '{' {
			s.at = at
			return s.object(rank)
		}
	}
	return s.textLine()
}

// object reads the object that begins here. After one that does not parse, reading goes on behind its
// first line: an object that is cut at the end of its line does not swallow the lines after it.
func (s *source) object(rank int) *document {
	s.forget()
	s.lost = false
	doc := &document{line: s.line, rank: rank}
	err := decodeObject(s, doc)
	if err == nil {
		if doc.raw = string(s.head); !s.lost {
			doc.raw = string(s.text[:min(s.at, maxLine)])
		}
		doc.raw = strings.ToValidUTF8(doc.raw, "\uFFFD")
		if s.at < len(s.text) && s.text[s.at] == ',' {
			s.at++ // between the objects of a list on one line
		}
		return doc
	}
	if s.cut == nil {
		reason := err.Error()
		if !errors.Is(err, errCut) {
			reason = "does not parse: " + reason
		}
		s.cut = &input.Error{Position: "line " + strconv.Itoa(doc.line), Expected: "a whole JSON object",
			Found: "one that " + reason}
	}
	if end := bytes.IndexByte(s.text[:s.at], '\n'); end >= 0 && !s.lost {
		s.at = end + 1
	}
	return nil
}

// textLine reads up to the next line end and keeps at most maxLine bytes.
func (s *source) textLine() *document {
	doc := &document{line: s.line}
	var kept []byte
	total, ended := 0, false
	for !ended && (s.at < len(s.text) || s.fill()) {
		piece := s.text[s.at:]
		end := bytes.IndexAny(piece, "\r\n")
		if ended = end >= 0; ended {
			piece = piece[:end]
			s.at++
		}
		kept = append(kept, piece[:min(len(piece), maxLine-len(kept))]...)
		s.at += len(piece)
		total += len(piece)
		s.forget()
	}
	doc.open = !ended && s.err == io.EOF
	if total > maxLine {
		s.long++
	}
	kept = color.ReplaceAll(kept, nil)
	at := 0
	if at, doc.rank = prefix(kept[:min(len(kept), prefixBytes)]); at == len(kept) {
		at = 0 // a line of nothing but prefixes is text
	}
	doc.raw, doc.text = strings.ToValidUTF8(string(kept), "\uFFFD"), strings.ToValidUTF8(string(kept[at:]), "\uFFFD")
	doc.readLabels()
	return doc
}
