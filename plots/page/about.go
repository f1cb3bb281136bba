package page

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

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

// about says where and when results were recorded, as far as they tell.
func about(items []Input) (facts []Fact) {
	add := func(name string, values ...string) {
		values = slices.DeleteFunc(values, func(v string) bool { return v == "" })
		if f := (Fact{name, strings.Join(values, ", ")}); len(values) > 0 && !slices.Contains(facts, f) {
			facts = append(facts, f)
		}
	}
	for _, in := range items {
		if c := in.Campaign; c != nil {
			begun := ""
			if !c.Campaign.Created.IsZero() {
				begun = "begun " + c.Campaign.Created.UTC().Format("2006-01-02 15:04 UTC")
			}
			add("Campaign", begun, c.Campaign.GPUs, shorten(c.Command, 90))
		}
		if in.Trace != nil && len(in.Trace.Exports) > 0 {
			e, day, profiler := in.Trace.Exports[0], "", "PyTorch profiler"
			if e.CapturedNS > 0 {
				day = time.Unix(0, int64(e.CapturedNS)).UTC().Format("2006-01-02")
			}
			if e.NsysVersion != "" {
				profiler = "nsys " + e.NsysVersion
			}
			add("Trace", day, quantity.Count(len(in.Trace.Ranks), "rank"), e.GPU, profiler)
		}
		if in.Counts != nil && len(in.Counts.Records) > 0 {
			add("Expert counts", quantity.Count(len(in.Counts.Records), "record"), in.Counts.Records[0].Format)
		}
	}
	return facts
}
