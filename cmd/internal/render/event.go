package render

import (
	"fmt"
	"strings"
	"time"

	"github.com/moebalance/moebalance/compare/bench"
)

// Event is the line for an event of a campaign, empty for most of them. metric is the
// one compared; empty means the primary one of the report.
func Event(e bench.Event, metric string) string {
	head := fmt.Sprintf("[%d of %d] launch %d, %s", e.Done, e.Done+e.Left, e.Launch.Position, describeLaunch(e.Launch))
	switch e.Stage {
	case bench.Starting:
		if n := len(e.Launch.Attempts); n > 1 {
			last := e.Launch.Attempts[n-2]
			return fmt.Sprintf("%s: attempt %d was %s (%s); trying again", head, last.Number, last.State, last.Error)
		}
	case bench.Ended:
		if e.Attempt.State == bench.Finished { // other ends are reported with the next attempt or as the error
			return head + ": " + describeAttempt(e.Attempt, metric)
		}
	case bench.Cooling:
		return fmt.Sprintf("%s: begins in %s", head, e.Text)
	case bench.Looked, bench.Cleaning:
		return e.Text
	}
	return ""
}

func describeLaunch(l bench.Launch) string {
	switch l.Kind {
	case bench.Timed:
		return fmt.Sprintf("pair %d, %s", l.Pair, l.Arm)
	case bench.Floor:
		return fmt.Sprintf("A/A pair %d, %s", l.Pair, l.Arm)
	}
	return fmt.Sprintf("%s, %s", l.Kind, l.Arm)
}

func describeAttempt(a bench.Attempt, metric string) string {
	took := time.Duration(a.DurationNS).Round(time.Millisecond)
	if a.Result != nil {
		if metric == "" {
			metric = a.Result.Primary
		}
		if m, ok := a.Result.Metric(metric); ok {
			return strings.TrimSpace(fmt.Sprintf("%.6g %s", m.Value, m.Unit)) + " in " + took.String()
		}
	}
	return fmt.Sprintf("done in %s", took)
}
