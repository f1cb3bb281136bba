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
		case in.Trace != nil && len(in.Given) > 0: // a pattern of captures: every run names them rank0, rank1
			dir, name := filepath.Split(in.Given[0])
			names = append(names, filepath.Join(filepath.Base(dir), name))
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
	add := func(name, when, gpu string) {
		if f := (Fact{name, strings.TrimSuffix(when+", "+gpu, ", ")}); !slices.Contains(facts, f) {
			facts = append(facts, f)
		}
	}
	for _, in := range items {
		if c := in.Campaign; c != nil && !c.Run.Created.IsZero() {
			add("Campaign", "begun "+c.Run.Created.UTC().Format("2006-01-02 15:04 UTC"), c.Run.GPUs)
		}
		if t := in.Trace; t != nil && len(t.Exports) > 0 && t.Exports[0].CapturedNS > 0 {
			e := t.Exports[0]
			add("Trace", time.Unix(0, int64(e.CapturedNS)).UTC().Format("2006-01-02"), e.GPU)
		}
	}
	return facts
}
