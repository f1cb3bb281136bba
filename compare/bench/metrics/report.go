package metrics

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/quantity"
)

// report is what a format finds in a document: metrics, work and proof, in order, and at its end the Result.
type report struct {
	*format
	out    Result
	found  []Metric     // and other numbers, which have no unit
	failed *input.Error // the first fault
}

// read takes what the paths mean, and then what only this format has.
func (r *report) read(d *document) {
	if runs, rule, _ := strings.Cut(r.One, " "); runs != "" && d.of(runs) != list(1) {
		r.fail(d.line, input.Error{Expected: "one run in " + runs, Found: "several", Try: "choose one with " + rule})
	}
	for _, path := range d.paths {
		r.set(settings[strings.ReplaceAll(path, " ", "_")], d.of(path))
		name, unit := r.meaning(path)
		if v, ok := r.number(d, path, name != ""); ok {
			beside, _ := d.of(path[:strings.LastIndexByte(path, '/')+1] + "unit").(string)
			unit = strings.ToLower(cmp.Or(unit, d.values[path].unit, beside))
			v, wrong := convert(v, unit, r.metric(name).Unit)
			if wrong != "" {
				r.fail(d.line, input.Error{Expected: "a known unit in " + strconv.Quote(path), Found: wrong})
			}
			if unit != "" || d.text == "" || strings.Contains(path, "ms") || r.metric(name).Unit != "ms" { // it may be seconds
				r.put(d.values[path].line, name, v)
			}
		}
	}
	if also := more[r.Format]; also != nil {
		also(r, d)
	}
}

// convert turns a number into another unit: 2 s in ms → 2000. A unit of another kind is returned as wrong: "tok/s" in
// ms.
func convert(v router.Number, from, to string) (_ router.Number, wrong string) {
	if f := units[from]; f.unit == to && to != "" {
		return v * router.Number(f.by), ""
	} else if from == "" || to == "" {
		return v, ""
	}
	return v, from
}

// set keeps the first value of a setting. Every spelling of infinity is one: JSON's Infinity of one client is
// the text "inf" of another.
func (r *report) set(name string, v any) {
	text, _ := v.(string)
	if x, ok := v.(float64); ok {
		text = strings.ToLower(strings.TrimPrefix(fmt.Sprint(x), "+"))
	}
	if name != "" && text != "" {
		r.out.Setup[name] = cmp.Or(r.out.Setup[name], text)
	}
}

// put records a number. The same again must have the same value.
func (r *report) put(line int, name string, v router.Number) {
	m := Metric{r.metric(name), v, line}
	if i := r.at(name); i < 0 {
		r.found = append(r.found, m)
	} else if old := r.found[i]; !same(old, m) {
		r.differ(name, float64(old.Value), float64(v), old.line, line)
	}
}

// at is where a number is among those found, −1 where it is not.
func (r *report) at(name string) int {
	return slices.IndexFunc(r.found, func(m Metric) bool { return m.Name == name })
}

// same compares two metrics, apart from where they stand.
func same(a, b Metric) bool { return a.Metric == b.Metric && equal(float64(a.Value), float64(b.Value)) }

// differ fails: a name stands for two values, the first in an earlier line.
func (r *report) differ(name string, a, b any, before, line int) {
	r.fail(line, input.Error{Expected: fmt.Sprintf("%s = %s (line %d) as before", name, kind(a), before), Found: kind(b),
		Try: "pass the output of one launch, or choose a match: --metric NAME:UNIT:higher:last=REGEX, or :median"})
}

// fail keeps the first fault.
func (r *report) fail(line int, e input.Error) {
	if e.Position = r.Format + " report"; line > 0 {
		e.Position = "line " + strconv.Itoa(line) + " (" + r.Format + ")"
	}
	r.failed = cmp.Or(r.failed, &e)
}

// kind names a value in an error: "a list", "the text "fast"".
func kind(v any) string {
	if text, ok := v.(string); ok {
		return fmt.Sprintf("the text %.40q", text)
	}
	return fmt.Sprint(v)
}

// number is a wanted number that may be absent, null, or an object of statistics.
func (r *report) number(d *document, path string, wanted bool) (router.Number, bool) {
	v := d.values[path]
	if _, statistics := v.is.(object); !wanted || v.is == nil || statistics {
		return router.Undefined(), false
	} else if v.other != nil {
		r.differ(path, v.is, v.other.is, v.line, v.other.line)
	}
	n, ok := v.is.(float64)
	if !ok {
		r.fail(v.line, input.Error{Expected: "a number in " + strconv.Quote(path), Found: kind(v.is)})
	}
	return router.Number(n), ok
}

// list is a list of numbers, empty where there is none, or more than is kept.
func (r *report) list(d *document, path string) (numbers []float64) {
	n, ok := d.of(path).(list)
	if !ok && d.of(path) != nil {
		r.fail(d.line, input.Error{Expected: "a list of numbers in " + strconv.Quote(path), Found: kind(d.of(path))})
	}
	for i := range int(n) {
		at := path + "/" + strconv.Itoa(i)
		if !d.has(at) {
			r.out.warn(fmt.Sprintf("%q is not used: it has %d values, beyond what is kept of an object", path, n))
			return nil
		}
		v, _ := r.number(d, at, true)
		numbers = append(numbers, float64(v))
	}
	return numbers
}

// end draws conclusions, and sorts what was found.
func (r *report) end() (Result, *input.Error) {
	for _, name := range r.Needs {
		if r.at(name) < 0 {
			r.fail(0, input.Error{Expected: name, Found: "none: the output is cut or from an unknown release or unit",
				Try: "choose a number by --metric 'NAME:UNIT:higher=REGEX'"})
		}
	}
	if r.out.Setup["validity"] == "INVALID" {
		r.out.warn("MLPerf's loadgen calls this result invalid")
	}
	for _, m := range r.found {
		switch name := m.Name; {
		case m.Unit != "":
			r.out.Metrics = append(r.out.Metrics, m)
		case !(m.Value >= 0 && m.Value <= 1<<53) || name == ranks && m.Value > router.MaxExperts:
			r.fail(m.line, input.Error{Expected: "a possible number of " + name, Found: kind(float64(m.Value))})
		case name == ranks:
			r.out.Proof.Ranks = int(m.Value)
		case name == accepted && m.Value > 1:
			r.out.warn("speculative decoding was on: its acceptance depends on the text, which a perfect router makes " +
				"meaningless; compare step times of equal batches")
		case name == accepted:
		case name == peak: // such as 5 tok/s with a mean of 223.49, of SGLang's issue 36272
			if i := r.at("output_throughput"); i >= 0 && m.Value < r.found[i].Value {
				r.out.warn(fmt.Sprintf("the peak of %.2f tok/s lies below the mean of %.2f: tokens came in few pieces, or the run "+
					"took under a second", m.Value, r.found[i].Value))
			}
		case strings.HasPrefix(name, mean):
			if i, all := r.at(requests), name[len(mean):]; i >= 0 && r.at(all) < 0 {
				r.out.Work[all] = math.Round(float64(r.found[i].Value * m.Value))
			}
		default:
			r.out.Work[name] = m.Value.Float64()
		}
	}
	rate, _ := r.out.Metric(r.out.preferred())
	if took, ok := r.out.Metric("duration"); ok && rate.HigherIsBetter && rate.Value*took.Value > 0 {
		r.out.Work[gain.WorkImplied] = float64(rate.Value * took.Value)
		r.checkWork(rate.Name, took.Value)
	}
	return r.out, r.failed
}

// checkWork warns of a throughput that is half as much again, or as little, as the report's own amount over its
// duration: 5120 tok/s with 10240 tokens in 4 s. A run below a second says little. Other reports are within 3 %.
func (r *report) checkWork(rate string, tookMS router.Number) {
	in, out, did := r.out.Work[inputTokens], r.out.Work[outputTokens], r.out.Work[gain.WorkImplied]/1e3
	n := map[string]float64{"output_throughput": out, "request_throughput": r.out.Work[requests],
		"total_throughput": (in + out) * min(1, in*out)}[rate] // 0 where one of both is not known
	if n > 0 && tookMS >= 1000 && max(n, did) >= 1.5*min(n, did) {
		r.out.warn(fmt.Sprintf("%s times duration is %s, but the report counts %s: one of them is wrong, so compare by "+
			"another number, too (--metric)", rate, quantity.Plain(math.Round(did)), quantity.Plain(n)))
	}
}
