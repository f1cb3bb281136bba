package metrics

import (
	"fmt"
	"strings"

	"github.com/moebalance/moebalance/router"
)

// aiperfFormat is the export of AIPerf and of GenAI-Perf, its predecessor:
// profile_export_aiperf.json, profile_export_genai_perf.json. They share names
// and units but are two programs, told apart by schema_version.
const (
	aiperfFormat   = "aiperf"
	genaiperfWords = "genai-perf"
)

// aiperfSingles and aiperfFamilies translate their names. Their inter token
// latency is what others call time per output token (one mean per request);
// their inter chunk latency is every gap.
var (
	aiperfSingles = map[string]string{
		"output_token_throughput": "output_throughput",
		"total_token_throughput":  "total_throughput",
		"request_throughput":      "request_throughput",
		"goodput":                 "request_goodput",
		"benchmark_duration":      "duration",
	}
	aiperfFamilies = map[string]string{
		"request_latency":                  "request_latency",
		"time_to_first_token":              "ttft",
		"inter_token_latency":              "tpot",
		"inter_chunk_latency":              "itl",
		"output_token_throughput_per_user": "user_speed",
	}
	aiperfCounts = map[string]func(*Work) *Count{
		"request_count":       requests,
		"error_request_count": failures,
		"total_isl":           inputTokens,
		"total_osl":           outputTokens,
	}
)

func isAIPerf(o *object) bool {
	v, ok, err := o.get("output_token_throughput")
	if m, is := v.(*object); ok && err == nil && is && m.has("unit", "avg") {
		return true
	}
	v, ok, err = o.get("request_throughput")
	m, is := v.(*object)
	return ok && err == nil && is && m.has("unit", "avg")
}

func readAIPerf(o *object, line int, t *tally) {
	rule := genaiperfWords + ", linear"
	if o.has("schema_version") {
		rule = aiperfFormat + ", linear"
	}
	f := fields{o: o, line: line, t: t, rule: rule}
	if v, ok := f.value("was_cancelled"); ok && v == true {
		t.fail(fmt.Errorf("%s: line %d: the run was cancelled: its numbers are of a part of the work", t.format, line))
	}
	if _, ok := f.value("output_token_throughput"); !ok {
		f.need("request_throughput/avg")
	}
	for _, key := range o.keys {
		if name, ok := aiperfSingles[key]; ok {
			f.withUnit(key, "avg", name)
		}
		if family, ok := aiperfFamilies[key]; ok {
			f.aiperfFamily(key, family)
		}
		if into, ok := aiperfCounts[key]; ok {
			f.work(key+"/avg", strings.ReplaceAll(key, "_", " "), into(&t.work))
		}
	}
	t.inputLength, _ = f.number("input_sequence_length/avg")
	t.outputLength, _ = f.number("output_sequence_length/avg")
	t.countTokens()
}

func (f fields) aiperfFamily(key, family string) {
	v, _ := f.value(key)
	m, ok := v.(*object)
	if !ok {
		f.wrong(key, "an object of statistics", v)
		return
	}
	for _, stat := range m.keys {
		if name, ok := aggregateName(stat); ok {
			f.withUnit(key, stat, family+"_"+name)
		}
	}
}

// unitFactors turn a unit as exports write it into the vocabulary's.
var unitFactors = map[string]map[string]float64{
	"ms":    {"ns": 1e-6, "us": 1e-3, "µs": 1e-3, "ms": 1, "milliseconds": 1, "s": 1e3, "sec": 1e3, "seconds": 1e3, "nanoseconds": 1e-6, "microseconds": 1e-3},
	"tok/s": {"tokens/sec": 1, "tokens/sec/user": 1, "tokens/s": 1, "tok/s": 1, "tokens/second": 1, "tokens/second/user": 1},
	"req/s": {"requests/sec": 1, "requests/s": 1, "req/s": 1, "requests/second": 1, "per_sec": 1},
}

// withUnit copies one statistic of a metric, in the unit the export states.
func (f fields) withUnit(key, stat, name string) {
	n, ok := f.number(key + "/" + stat)
	if !ok {
		return
	}
	v, _ := f.value(key + "/unit")
	unit, _ := v.(string)
	m := metricOf(name, f.rule, "", n)
	factor, ok := unitFactors[m.Unit][strings.ToLower(unit)]
	if !ok {
		f.wrong(key+"/unit", "a unit that is known for "+m.Unit, v)
		return
	}
	m.Value *= router.Number(factor)
	f.t.metric(f.line, m)
}

// Two of AIPerf's files hold no result of one launch and are refused by name.
func isAIPerfAggregate(o *object) bool {
	v, _, err := o.get("metadata")
	m, ok := v.(*object)
	return err == nil && ok && o.has("metrics") && (m.has("aggregation_type") || m.has("num_profile_runs") || m.has("confidence_level"))
}

func isAIPerfRecord(o *object) bool {
	v, _, err := o.get("metadata")
	m, ok := v.(*object)
	return err == nil && ok && o.has("metrics") && m.has("request_start_ns")
}

func refuse(what string) func(*object, int, *tally) {
	return func(_ *object, line int, t *tally) {
		t.fail(fmt.Errorf("%s: line %d: %s", t.format, line, what))
	}
}
