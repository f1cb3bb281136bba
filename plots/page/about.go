package page

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router/quantity"
)

// titleOf is the name of a program: the benchmark's command, or else its inputs.
func titleOf(items []Input) string {
	var names []string
	for _, in := range items {
		switch {
		case in.Campaign != nil && in.Campaign.Command != "":
			return shorten(in.Campaign.Command, 90)
		case in.Trace != nil:
			for _, e := range in.Trace.Exports {
				names = append(names, filepath.Base(e.Path))
			}
		case in.Compared == nil || len(items) == 1:
			names = append(names, in.Name)
		}
	}
	names = slices.Compact(names)
	if more := len(names) - 3; more > 1 {
		names = append(names[:3], quantity.Count(more, "other"))
	}
	return strings.Join(names, ", ")
}

// about is what is known of where and when results were recorded.
func about(items []Input) (facts []Fact) {
	add := func(name string, values ...string) {
		values = slices.DeleteFunc(slices.Compact(values), func(v string) bool { return v == "" })
		fact := Fact{Name: name, Value: strings.Join(values, ", ")}
		switch last := len(facts) - 1; {
		case len(values) == 0:
		case last >= 0 && facts[last].Value == fact.Value && strings.HasPrefix(name, "Trace"):
			facts[last].Name = "Traces"
		default:
			facts = append(facts, fact)
		}
	}
	var counted, formats []string
	for _, in := range items {
		if c := in.Campaign; c != nil {
			begun := ""
			if !c.Campaign.Created.IsZero() {
				begun = "begun " + c.Campaign.Created.UTC().Format("2006-01-02 15:04 UTC")
			}
			add("Campaign", begun, c.Campaign.GPUs, shorten(c.Command, 90))
		}
		if t := in.Trace; t != nil {
			of := "Trace"
			if t.Arm != "" {
				of += " of " + gain.Arm(t.Arm).Label()
			}
			add(of, recordedBy(in)...)
		}
		if in.Counts != nil {
			for _, r := range in.Counts.Records {
				counted = append(counted, filepath.Base(r.Source))
				formats = append(formats, r.Format)
			}
		}
	}
	if more := len(counted) - 3; more > 1 {
		counted = append(counted[:3], quantity.Count(more, "other"))
	}
	slices.Sort(formats)
	add("Expert counts", slices.Concat(counted, slices.Compact(formats))...)
	return facts
}

// recordedBy is the day, the number of ranks, the GPU and the profiler of an input with a trace.
func recordedBy(in Input) []string {
	day, gpu, profiler := "", "", ""
	for _, e := range slices.Backward(in.Trace.Exports) { // the first one decides
		if e.CapturedNS > 0 {
			day = time.Unix(0, int64(e.CapturedNS)).UTC().Format("2006-01-02")
		}
		gpu = e.GPU
		profiler, _, _ = strings.Cut(e.SchemaVersion, " profiler ") // the rest is the version of the format
		if e.NsysVersion != "" {
			profiler = "nsys " + e.NsysVersion
		} else if profiler != e.SchemaVersion {
			profiler += " profiler"
		}
	}
	return []string{day, quantity.Count(len(in.Trace.Ranks), "rank"), gpu, profiler}
}
