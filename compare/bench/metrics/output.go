package metrics

import (
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
)

// maxOutput bounds an output, which is read whole; maxAgain what of a broken object is read again;
// maxPrefix how far into a line its text may begin.
const (
	maxOutput = 256 << 20
	maxAgain  = 1 << 20
	maxPrefix = 512
)

// color is what terminals are told.
var color = regexp.MustCompile(`\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[@-Z\\-_])`)

// readText reads an output of at most so many bytes, without color codes.
func readText(r io.Reader, most int64) (string, *input.Error) {
	var b strings.Builder
	n, err := io.Copy(&b, io.LimitReader(r, most+1))
	text := b.String()
	switch {
	case err != nil:
		return "", &input.Error{Err: err}
	case n > most:
		return "", &input.Error{Expected: "at most " + strconv.FormatInt(most>>20, 10) + " MiB", Found: "more",
			Try: "give the part that holds the report"}
	case strings.HasPrefix(text, "\xff\xfe"), strings.HasPrefix(text, "\xfe\xff"):
		return "", &input.Error{Expected: "UTF-8", Found: "UTF-16", Try: "convert it with iconv -f utf-16 -t utf-8"}
	}
	text = strings.TrimPrefix(text, "\xef\xbb\xbf") // a byte order mark
	return color.ReplaceAllString(strings.ToValidUTF8(text, "\uFFFD"), ""), nil
}

// output is a text from which objects and lines are taken one by one. Carriage returns end a line as newlines
// do, which takes progress bars apart from the results they overwrite.
type output struct {
	text string       // what is left
	line int          // where it begins, from 1
	cut  *input.Error // the first object that did not parse
}

// record is an object or a line.
type record struct {
	document
	text    string // as it stands in the output
	printed string // a line behind what a launcher or logger put before it; "" for an object
}

// prefix is what may stand before a record: a launcher's rank ("0: " of srun, "[1,0]<stdout>:" of mpirun,
// "(Worker_TP0 pid=12) " of vLLM), and the head of a log line, which may name the rank
// ("[11/20/2026-10:00:00] [TRT-LLM] [RANK 0] [I] ", SGLang's "[2026-11-20 10:00:00 DP1 TP1] ").
var prefix = regexp.MustCompile(`^(?:[ \t]+|(\d+): ?|\[\d+,(\d+)\](?:<std(?:out|err)>)?: ?|` +
	`\((?:\w+ )*\w*?(\d+)? ?pid=\d+(?:, ip=[^)]*)?\) |` +
	`\[(?:\d[^\[\]{}]{0,40}?(?: [DT]P(\d+)[^\[\]{}]{0,20})?|TRT-LLM|TensorRT-LLM|` +
	`_torch|RANK (\d+)|I|W|E|F|V|INFO|WARNING|ERROR)\] ?)*`)

// next takes an object or a line. An object that does not parse is a line: one that is cut at the end of its
// line does not swallow the lines after it.
func (o *output) next() *record {
	end := strings.IndexAny(o.text, "\r\n")
	if end < 0 {
		end = len(o.text)
	}
	r, at := &record{document: document{line: o.line, rank: router.NoID}}, 0
	if end > 0 && strings.IndexByte(" \t[(0123456789", o.text[0]) >= 0 {
		m := prefix.FindStringSubmatch(o.text[:min(end, maxPrefix)])
		at = len(m[0])
		for _, digits := range m[1:] {
			if n, err := strconv.Atoi(digits); err == nil && n < 1e6 {
				r.rank = router.OptInt(n)
			}
		}
		if strings.HasPrefix(o.text[at:end], "[{") { // a list of objects on one line
			at++
		}
	}
	if r.printed = o.text[at:end]; strings.HasPrefix(r.printed, "{") {
		s := scanner{doc: &r.document, text: o.text, at: at}
		if s.value(""); s.err == nil {
			r.text, r.printed = o.text[at:s.at], ""
			s.accept(',') // between the objects of a list
			o.skip(s.at)
			return r
		}
		if o.cut == nil {
			o.cut = &input.Error{Position: "line " + strconv.Itoa(o.line), Expected: "a whole JSON object",
				Found: "one that " + s.err.Error()}
		}
		if r.document = (document{line: o.line, rank: r.rank}); s.at > maxAgain {
			end = min(s.at, len(o.text))
		}
	}
	r.text = o.text[:end]
	o.skip(min(end+1, len(o.text)))
	return r
}

// skip goes on behind so many bytes.
func (o *output) skip(n int) { o.line, o.text = o.line+strings.Count(o.text[:n], "\n"), o.text[n:] }
