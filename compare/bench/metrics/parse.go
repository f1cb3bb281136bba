package metrics

import (
	"cmp"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
)

// maxOutput bounds an output, which is read whole, and maxReports the launches in it; maxAgain what of a broken object
// is read again; maxLabels how many labels are looked up, maxPrefix how far into a line its text may begin, and
// maxLine how far its labels are read.
const (
	maxOutput, maxReports, maxAgain = 256 << 20, 10_000, 1 << 20
	maxPrefix, maxLine, maxLabels   = 1 << 10, 1 << 12, 1 << 16
)

// Parse reads the output of one launch, which errors call by its name. Custom metrics
// must be found. With at least one of them the rest of the output need not be a known
// format, and a report in it that cannot be used is a warning.
//
// Otherwise it is an *input.Error when nothing is recognized, when
// results of two tools or of two launches are in one output, when a required key is
// missing or contradicts itself, and when reading fails.
func Parse(name string, r io.Reader, custom []Custom) (Result, error) {
	runs, err := ParseRuns(name, r, custom)
	if len(runs) > 1 {
		err = &input.Error{File: name, Expected: "the output of one launch",
			Found: fmt.Sprintf("%d reports of %s that differ", len(runs), runs[0].Format)}
	}
	return append(runs, Result{})[0], err
}

// ParseRuns is Parse for a file that may hold several launches, one JSON object each, such as the collected
// lines of the built-in workload or a client's JSON Lines, or reports that a serving client printed one
// behind the other. It returns one Result of each in order.
func ParseRuns(name string, r io.Reader, custom []Custom) ([]Result, error) {
	text, failed := readText(r, maxOutput)
	p := parser{text: text, left: text, line: 1, known: map[string]bool{},
		log: iterationLog{ranks: map[router.OptInt][]step{}}}
	for _, c := range custom {
		p.rules = append(p.rules, &rule{c, report{format: &format{Format: customFormat}}})
	}
	for p.left != "" {
		p.offer(p.next())
	}
	p.read(&p.labels)
	runs, none := p.runs()
	if failed = cmp.Or(failed, none); failed != nil {
		failed.File = name
		return nil, failed
	}
	return runs, nil
}

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

// parser takes an output apart into documents and offers them to the user's rules and to the formats.
type parser struct {
	text, left string
	line       int          // where what is left begins, from 1
	cut        *input.Error // the first object that did not parse
	rules      []*rule
	labels     document        // those printed since the last title
	known      map[string]bool // by label, whether anything is known of it
	columns    []string        // of the table whose rows are printed, which may have commas between cells
	commas     bool
	reports    []*report
	log        iterationLog
}

// prefix is what may stand before a record, behind a launcher's rank: a comma between the objects of a list, a quote,
// the heads of containers ("sglang-1  | ", "[pod/a/b] ", "stdout F "), of processes ("(Worker_TP0 pid=12) " of vLLM,
// "gpu01 vllm[12]: " of journald), progress bars ("100%|###| 8/8 [00:09<00:00, 1.0it/s]"), times, and the heads of log
// lines, which may name the rank ("[11/20/2026-10:00:00] [TRT-LLM] [RANK 0] [I] ", SGLang's
// "[2026-11-20 10:00:00 DP1 TP1] ", "2026-11-20 10:00:00 INFO 12 [DP1 TP1 mixin.py:2] ", Triton's
// "I1120 10:00:00.1 12 a.cc:5] ", Python's "INFO:root:" and "2026-11-20 10:00:00,1 - root - INFO - ", loguru's
// "| INFO     | a:b:1 - ").
var prefix = regexp.MustCompile(`^(?:[ \t,]+|> |[\w.-]+ +\| |\((?:\w+ )*\w* ?pid=\d+(?:, ip=[^)]*)?\) |` +
	`\d+%\|[^|]*\| [^\[\]]*\[[^\[\]]*\]|std(?:out|err) [FP] |` +
	`\[(?:(?:\d[^\[\]{}]*? ?)?(?:[DT]P(\d{1,6})[^\[\]{}]*)?|pod/[^\[\]]*|TRT-LLM|TensorRT-LLM|` +
	`_torch|RANK \d+|I|W|E|F|V|INFO|WARNING|ERROR|\w+\.py:\d+)\] ?|` +
	`\d{4}-\d\d-\d\d[ T][\d:.,]+(?:Z|[+-]\d\d:?\d\d| UTC)? |` +
	`[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d (?:[\w.-]+ [\w.-]+\[\d+\]: )?|` +
	`(?:- )?(?:[\w.]+ - )?(?:INFO|WARNING) - |\| INFO +\| [\w.:<>]+ - |` +
	`(?:INFO|WARNING)(?:: |:[\w.]+:| (?:\d+ |\d\d-\d\d [\d:]+ )?)|` +
	`[IWE]\d{4} [\d:.]+ +\d+ [\w.]+:\d+\] |\w+\.py:\d+: )*`)

// next takes an object or a line. A carriage return ends a line as a newline does, which takes progress bars apart
// from the results they overwrite. An object that does not parse is a line: one that is cut at the end of its
// line does not swallow the lines after it, unless it is so long that reading it again would take too long.
func (p *parser) next() *document {
	end := strings.IndexAny(p.left, "\r\n")
	if end < 0 {
		end = len(p.left)
	}
	launched, begin := input.LauncherRank(p.left[:end])
	m := prefix.FindStringSubmatch(p.left[begin:min(end, maxPrefix)])
	rank, at := router.OptInt(launched), begin+len(m[0])
	if n, err := strconv.Atoi(m[1]); err == nil {
		rank = router.OptInt(n)
	}
	if strings.HasPrefix(p.left[at:end], "[{") { // a list of objects on one line
		at++
	}
	if at < end && p.left[at] == '{' {
		d := &document{line: p.line, rank: rank}
		s := scanner{doc: d, text: p.left, at: at + 1, token: "{"}
		if s.value(""); s.err == nil {
			d.text = p.left[at:s.at]
			p.skip(s.at)
			return d
		}
		p.cut = cmp.Or(p.cut, &input.Error{Position: "line " + strconv.Itoa(p.line), Expected: "a whole JSON object",
			Found: "one that " + s.err.Error()})
		if s.at > maxAgain {
			end = max(end, s.at)
		}
	}
	d := &document{line: p.line, rank: rank, text: p.left[:end], printed: strings.TrimRight(p.left[at:end], " \t")}
	p.skip(min(end+1, len(p.left)))
	return d
}

// skip goes on behind so many bytes.
func (p *parser) skip(n int) { p.line, p.left = p.line+strings.Count(p.left[:n], "\n"), p.left[n:] }

// offer takes an object into a report, a row into the iteration log, and known labels of a line to those under their
// title.
func (p *parser) offer(d *document) {
	if !p.inTable(d) {
		d.readLine()
	}
	for _, c := range p.rules {
		c.read(d)
	}
	// A title stands between "=== " and " ===", and "======" ends what it stands over; the titles of SGLang's
	// bench_one_batch are named.
	title := strings.Trim(d.printed, "= ")
	switch {
	case iterations.fits(d):
		p.log.add(d)
	case d.printed == "":
		p.read(d)
	case title == "Benchmark ...", title == "Warmup ...",
		title+p.labels.title != "" && strings.HasPrefix(d.printed, "=") && strings.HasSuffix(d.printed, "="):
		p.read(&p.labels)
		p.labels = document{line: d.line, title: title}
	default:
		for _, label := range d.paths {
			known, seen := p.known[label]
			if !seen {
				name, _ := iterations.meaning(label)
				if known = cmp.Or(name, settings[strings.ReplaceAll(label, " ", "_")]) != ""; len(p.known) < maxLabels {
					p.known[label] = known
				}
			}
			if known { // others are not kept
				p.labels.set(label, d.values[label])
			}
		}
	}
}

// read takes a document into a report of its own, if a format fits. A warm-up is no report.
func (p *parser) read(d *document) {
	for _, f := range formats {
		if f.fits(d) && d.title != "Warmup Begin" && len(p.reports) <= maxReports {
			r := &report{format: f, out: Result{Format: f.Format, Setup: map[string]string{}, Work: map[string]float64{}}}
			r.read(d)
			p.reports = append(p.reports, r)
			return
		}
	}
}

// runs ends the reports. They are of one format, and an iteration log may accompany one. Reports that are all the same
// are one run. Custom metrics stand before the format's own of that name, and before the log's; where there are some,
// reports that cannot be used are only a warning.
func (p *parser) runs() (runs []Result, err *input.Error) {
	beside, differ := Result{Format: customFormat}, false
	if len(p.log.ranks) > 0 {
		beside = p.log.summary()
	}
	for _, c := range p.rules {
		if err := c.end(&beside); err != nil {
			return nil, err
		}
	}
	for _, r := range p.reports {
		out, failed := r.end()
		if runs = append(runs, out); runs[0].Format != out.Format || len(p.rules) > 0 && len(runs) > 1 {
			failed = &input.Error{Expected: "one report", Found: runs[0].Format + " and " + out.Format,
				Try: "pass them one at a time"}
		}
		differ = differ || !slices.EqualFunc(runs[0].Metrics, out.Metrics, same) ||
			!reflect.DeepEqual([]any{runs[0].Work, runs[0].Proof, runs[0].Setup}, []any{out.Work, out.Proof, out.Setup})
		err = cmp.Or(err, failed)
	}
	switch {
	case len(p.rules) > 0 && err != nil:
		beside.warn("only --metric was read: " + err.Fault())
		runs = nil
	case err != nil:
		return nil, err
	case len(runs) > maxReports:
		return nil, &input.Error{Expected: "at most " + strconv.Itoa(maxReports) + " reports", Found: "more"}
	case len(p.rules)+len(runs) == 0 && beside.Format == customFormat:
		return nil, p.nothing()
	}
	if len(runs) == 0 {
		runs = []Result{{Format: beside.Format, Work: map[string]float64{}}}
	} else if !differ {
		runs = runs[:1]
	}
	if p.cut != nil {
		beside.warn("not used: " + p.cut.Fault())
	}
	for i := range runs {
		out := &runs[i]
		out.Metrics = append(slices.Clone(beside.Metrics), out.Metrics...)
		out.Warnings, out.Attention = slices.Concat(beside.Warnings, out.Warnings), beside.Attention
		last := slices.ContainsFunc(out.Metrics, func(m Metric) bool { return m.line == p.line })
		if last && strings.TrimRight(p.text, "}]") == p.text {
			out.warn(fmt.Sprintf("line %d ends the output without a newline: its number may be cut", p.line))
		}
		out.Primary = cmp.Or(beside.Primary, out.preferred())
	}
	return runs, nil
}

// nothing says why no result was found, and what makes an engine's log say how long steps take.
func (p *parser) nothing() *input.Error {
	e := &input.Error{Expected: "a benchmark result", Found: "none"}
	if p.cut != nil {
		e = p.cut
	} else if strings.TrimSpace(p.text) == "" {
		e.Found = "an empty output"
	}
	e.Try = strings.TrimPrefix(input.EngineLog(p.text)+"; or ", "; or ") + "name a number with --metric " +
		"'NAME:UNIT:higher=REGEX' (or :lower, or =$.json.path); 'moebalance counts' reads expert counts"
	return e
}
