package bench

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/gain"
)

// checks answers what only the launches themselves can. Work is for package gain, which has the values.
func (c *Campaign) checks(m gain.Metric, seen bool) []gain.Check {
	checks := append([]gain.Check{c.checkRetries()}, c.checkGPUs()...)
	var said []string
	if _, lost := launch.PassOn(c.Spec.Command.engine(), c.Spec.own()); !seen && lost != "" {
		said = append(said, lost)
	}
	if len(c.Spec.Command.Server) > 0 && in(c.Spec.Command.Normal, "arm") { // whose arms the user declared
		said = append(said, "the client is told its arm by {arm}: what it does may be the difference, not the server")
	}
	for i, l := range c.Launches {
		a, done := l.Done()
		said = append(said, slices.DeleteFunc(slices.Clone(a.Warnings), func(w string) bool { return w == leftBehind })...)
		if done && i == 0 { // what other reports say differs in numbers
			said = append(said, a.Segments[0].Result.Warnings...)
		}
	}
	if slices.Sort(said); len(said) > 0 {
		checks = append(checks, gain.NewCheck("launcher", gain.Warn, "said", "messages", slices.Compact(said)))
	}
	if rate := c.Spec.fixedRate(m); rate != "" {
		checks = append(checks, gain.NewCheck(gain.CheckRate, gain.Warn, "client", "rate", rate))
	}
	return checks
}

// passOrWarn is a check of two cases, pass and warn.
func passOrWarn(name string, ok bool, args ...any) gain.Check {
	status := gain.Warn
	if ok {
		status = gain.Pass
	}
	return gain.NewCheck(name, status, string(status), args...)
}

// checkRetries reports attempts that failed, lost their router or were interrupted before the one that
// counts, and launches that left processes behind at any attempt. Where more than a tenth of the launches
// count only because others failed, what fails may choose the result. Lost routers and interruptions choose none,
// but where there are more than three for each launch: a client may interrupt what it does not like.
func (c *Campaign) checkRetries() gain.Check {
	of, left, n := map[State]int{}, 0, len(c.Launches)
	for _, l := range c.Launches {
		for _, a := range l.Attempts {
			of[a.State]++
		}
		if slices.ContainsFunc(l.Attempts, func(a Attempt) bool { return slices.Contains(a.Warnings, leftBehind) }) {
			left++
		}
	}
	chosen := of[Failed]
	if ended := of[Interrupted] + of[Lost]; ended > 3*n {
		chosen += ended
	}
	if chosen > max(1, n/10) {
		return gain.NewCheck(gain.CheckAttempts, gain.Warn, "selected", "failed", chosen, "launches", n)
	}
	args := []any{"failed", of[Failed], "interrupted", of[Interrupted], "left", left}
	if of[Lost] > 0 {
		args = append(args, "lost", of[Lost])
	}
	return passOrWarn(gain.CheckAttempts, of[Failed]+of[Lost]+of[Interrupted]+left == 0, args...)
}

// clockTolerance is the relative difference of the arms' mean SM clocks beyond which they are worth a warning.
const clockTolerance = 0.02

// checkGPUs compares what nvidia-smi showed beside the launches; nil when it was
// never asked. Arms that share a launch ran on the same GPUs.
func (c *Campaign) checkGPUs() (checks []gain.Check) {
	seen, others, clock := false, make(map[string]bool), make(map[gain.Arm][]float64)
	for _, l := range c.Launches {
		a, _ := l.Done()
		for _, g := range a.GPUs {
			seen = true
			if g.BusyLooks > 0 && g.ClockMHz.Defined() { // an idle GPU has other clocks
				clock[l.Arm] = append(clock[l.Arm], g.ClockMHz.Float64())
			}
			for _, p := range g.Processes {
				if !p.Ours {
					others[fmt.Sprintf("%s (GPU %d)", p.Name, g.Index)] = true
				}
			}
		}
	}
	if !seen {
		return nil
	}
	checks = []gain.Check{passOrWarn("other_processes", len(others) == 0, "processes", slices.Sorted(maps.Keys(others)))}
	if a, b := stat.Mean(clock[gain.Normal], nil), stat.Mean(clock[gain.Perfect], nil); a > 0 && b > 0 {
		checks = append(checks, passOrWarn("clocks", math.Abs(a-b) <= clockTolerance*max(a, b), "arm",
			c.Spec.Builds.Called(gain.Normal), "mhz", a, "other", c.Spec.Builds.Called(gain.Perfect), "others", b))
	}
	return checks
}

// rateOption finds the rate at which a client is told to send requests.
var rateOption = regexp.MustCompile(`--?request[-_]rate[ =]["']?([0-9.]*[1-9][0-9.]*)(?:["']|\s|$)`)

// fixedRate is the rate at which the client sends requests, where a throughput is judged, which that fixes; else
// empty.
func (s Spec) fixedRate(m gain.Metric) string {
	found := rateOption.FindStringSubmatch(strings.Join(s.Command.Normal, " "))
	if found == nil || !m.HigherIsBetter || s.Points != nil && in(s.Command.Normal, s.Points.Name) {
		return ""
	}
	return found[1]
}
