package bench

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/bench/control"
	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/compare/gain"
)

// A campaign of two pairs: what counts, what does not, and why.
func TestRecorded(t *testing.T) {
	spec := Spec{
		Design:    Design{Pairs: 2, Seed: 7},
		Command:   Command{Normal: []string{"run", "a b"}},
		Threshold: 0.2,
	}
	report := func(format, name string) *metrics.Result {
		return &metrics.Result{Format: format, Primary: name, Work: map[string]float64{gain.WorkRequests: 5},
			Metrics: []metrics.Metric{
				{Metric: gain.Metric{Name: name, Unit: "tok/s", HigherIsBetter: true, Definition: name + "/d"},
					Value: 100},
				{Metric: gain.Metric{Name: "ttft", Unit: "ms", Definition: "ttft/d"}, Value: 3},
			}}
	}
	c := &Campaign{Spec: spec, Launches: spec.plan()}
	finish := func(at int, r *metrics.Result) {
		c.Launches[at].Attempts = append(c.Launches[at].Attempts, Attempt{Number: len(c.Launches[at].Attempts) + 1,
			State: Finished, Segments: []Segment{{Run: control.Run{Timed: true}, Result: r}}})
	}
	c.Launches[0].Attempts = []Attempt{{Number: 1, State: Failed, Error: "no port"}, {Number: 2, State: Failed, Error: "no memory"}}
	finish(0, report("tool", "rate"))
	c.Launches[0].Attempts[2].Segments[0].Result.Warnings = []string{"drafts were on"}
	finish(1, report("another tool", "rate"))
	finish(2, report("tool", "speed"))
	c.Launches[3].Attempts = []Attempt{{Number: 1, State: Interrupted, Error: "ended"}}

	got := Recorded(c)
	want := gain.Metric{Name: "rate", Unit: "tok/s", HigherIsBetter: true, Definition: "rate/d"}
	if got.Threshold != 0.2 || got.Command != "run 'a b'" || got.Metric != want {
		t.Errorf("threshold %v, command %q, metric %+v", got.Threshold, got.Command, got.Metric)
	}
	rows := ""
	for _, l := range got.Measurements {
		rows += fmt.Sprintf("%d %d %s: %s; ", l.Position, l.Unit, l.Status, l.Note)
		if want := c.Launches[l.Position]; l.Arm != want.Arm {
			t.Errorf("launch %d: arm %s", l.Position, l.Arm)
		}
	}
	// One launch each that counts, is of another tool, has other numbers, did not end.
	if wanted := "0 0 ok: attempt 2 failed: no memory; 1 0 reports rate (rate/d) of another tool, not rate (rate/d) of tool: ; " +
		"2 1 reports speed (speed/d) of tool, not rate (rate/d) of tool: ; 3 1 interrupted: attempt 1 interrupted: ended; "; rows != wanted {
		t.Errorf("launches\n%s\nwant\n%s", rows, wanted)
	}
	if said := fmt.Sprint(got.Checks); !strings.Contains(said, "drafts were on") {
		t.Error(said)
	}
	first := got.Measurements[0]
	if first.Value != 100 || !reflect.DeepEqual(first.Work, map[string]float64{gain.WorkRequests: 5}) ||
		!reflect.DeepEqual(first.Secondary,
			map[gain.Metric]float64{{Name: "ttft", Unit: "ms", Definition: "ttft/d"}: 3}) {
		t.Errorf("%+v", first)
	}
}
