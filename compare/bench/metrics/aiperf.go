package metrics

import (
	"slices"
	"strings"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
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
		"ttft":                             "ttft",
		"inter_token_latency":              "tpot",
		"inter_chunk_latency":              "itl",
		"output_token_throughput_per_user": "user_speed",
	}
	aiperfCounts = map[string]labelRule{
		"request_count":       requests,
		"error_request_count": failures,
		"total_isl":           inputTokens,
		"total_osl":           outputTokens,
	}
)

func isAIPerf(o *object) bool {
	o = aiperfMetrics(o)
	return slices.ContainsFunc([]string{"output_token_throughput", "request_throughput"}, func(key string) bool {
		v, _, _ := o.get(key)
		m, ok := v.(*object)
		return ok && m.has("unit", "avg")
	})
}

// aiperfMetrics is the object that holds the metrics: the export itself, or its
// "records" in releases of 2025.
func aiperfMetrics(o *object) *object {
	v, _, _ := o.get("records")
	if records, ok := v.(*object); ok {
		return records
	}
	return o
}

func readAIPerf(f fields) {
	f.rep.rule = genaiperfWords + ", linear"
	export := f
	if f.o = aiperfMetrics(f.o); f.o != export.o || f.o.has("schema_version") {
		f.rep.rule = aiperfFormat + ", linear"
	}
	if v, ok := export.value("was_cancelled"); ok && v == true {
		f.rep.fail(f.line, input.Error{Expected: "a complete run", Found: "was_cancelled: true", Try: "repeat the run"})
	}
	if _, ok := f.value("output_token_throughput"); !ok {
		f.need("request_throughput/avg")
	}
	for _, key := range f.o.keys {
		if name, ok := aiperfSingles[key]; ok {
			f.withUnit(key, "avg", name)
		}
		if family, ok := aiperfFamilies[key]; ok {
			f.statistics(key, func(stat, name string) { f.withUnit(key, stat, family+"_"+name) })
		}
		if e, ok := aiperfCounts[key]; ok {
			f.record([]member{{key + "/avg", e, false}})
		}
	}
	export.aiperfErrors()
	f.rep.inputLength, _ = f.number("input_sequence_length/avg")
	f.rep.outputLength, _ = f.number("output_sequence_length/avg")
	f.rep.countTokens()
	f.rep.lengths = Lengths{f.lengths("input_sequence_length"), f.lengths("output_sequence_length")}
}

// aiperfErrors sums the error summary, which lists failed requests by kind even
// where error_request_count is null.
func (f fields) aiperfErrors() {
	v, _ := f.value("error_summary")
	kinds, ok := v.(*list)
	if !ok || f.rep.work.Errors.Known || kinds.dropped > 0 {
		return
	}
	sum := 0.0
	for _, kind := range kinds.items {
		if o, ok := kind.(*object); ok {
			entry := f
			entry.o = o
			sum += float64(entry.need("count"))
		}
	}
	f.rep.record(failures, f.line, sum)
}

// unitFactors turn a unit as exports write it into the vocabulary's.
var unitFactors = map[string]map[string]float64{
	"ms": {"ns": 1e-6, "us": 1e-3, "µs": 1e-3, "ms": 1, "milliseconds": 1, "s": 1e3, "sec": 1e3, "seconds": 1e3,
		"nanoseconds": 1e-6, "microseconds": 1e-3},
	"tok/s": {"tokens/sec": 1, "tokens/sec/user": 1, "tokens/s": 1, "tok/s": 1, "tokens/second": 1,
		"tokens/second/user": 1},
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
	m := metricOf(name, f.rep.rule, "", n)
	factor, ok := unitFactors[m.Unit][strings.ToLower(unit)]
	if !ok {
		f.wrong(key+"/unit", "a known unit of "+m.Unit, v)
		return
	}
	m.Value *= router.Number(factor)
	f.rep.metric(f.line, m)
}
