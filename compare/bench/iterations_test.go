package bench

import (
	"context"
	"math"
	"strings"
	"testing"
)

// The log has 4 steps of prefill and 36 of decode, of which 3 are warm-up; decode takes 12
// ms in the normal arm and 10 in the perfect one.
func TestIterationLogsOfACampaign(t *testing.T) {
	for name, file := range map[string]string{"printed": "", "in a file": "{out}/iterations.log"} {
		spec := testSpec(t, 1)
		if spec.IterationLog = file; file != "" {
			spec.Command.Normal = append(spec.Command.Normal, file)
			spec.Custom = []string{"speed:tok/s=$.tokens_per_second"} // not in that file
		}
		if err := spec.Check(); err != nil {
			t.Fatal(err)
		}
		c := create(t, spec)
		if err := c.Run(context.Background(), testHost("iterations")); err != nil {
			t.Fatal(err)
		}
		if a, _ := c.Launches[0].Done(); a.IterationRows != 40 || a.Result.Format != "moebalance-workload" {
			t.Errorf("%s: kept %d rows beside %s", name, a.IterationRows, a.Result.Format)
		}
		got := reopen(t, c).Iterations()
		if got == nil {
			t.Fatalf("%s: no iterations", name)
		}
		if m := got.Matched; math.Abs(float64(m.Gain)-0.2) > 1e-12 ||
			len(m.Strata) != 1 || m.Strata[0].Kind != "decode" || m.Strata[0].NormalSteps != 33 {
			t.Errorf("%s: matched %+v", name, m)
		}
	}
	spec := testSpec(t, 1)
	spec.IterationLog = "iterations.log"
	if err := spec.Check(); err == nil || !strings.Contains(err.Error(), "{out}") {
		t.Errorf("a log that every launch overwrites: %v", err)
	}
	spec.IterationLog = "{out}/nothing.log"
	c := create(t, spec)
	if err := c.Run(context.Background(), testHost("report")); err != nil {
		t.Fatal(err)
	}
	if c.Iterations() != nil || !strings.Contains(strings.Join(c.launcherWarnings(), "; "),
		"no iteration rows in the file of --iteration-log") {
		t.Errorf("warnings %q", c.launcherWarnings())
	}
}
