package bench

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/moebalance/moebalance/compare/bench/difference"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// checks answers what only the launches themselves can. Work, order and drift are for
// package gain, which has the values.
func (c *Campaign) checks() []gain.Check {
	checks := append([]gain.Check{c.checkFiles(), c.checkSessions(), c.checkRetries(), c.checkCPU()}, c.checkGPUs()...)
	if check, ok := c.checkReports(); ok {
		checks = append(checks, check)
	}
	for _, where := range []func() (gain.Check, bool){c.checkServer, c.checkSlots} {
		if check, ok := where(); ok {
			checks = append(checks, check)
		}
	}
	if c.Spec.Design.Within() {
		checks = append(checks, c.checkPrompts())
	}
	if c.Spec.Treatment.Chance() {
		checks = append(checks,
			warning("treatment", "random routing is even only on average: at small batches its busiest rank has more load "+
				"than under balanced routing"))
	}
	if text := c.launcherWarnings(); text != "" {
		checks = append(checks, warning("launcher", text))
	}
	return checks
}

func warning(name, text string) gain.Check {
	return gain.Check{Name: name, Status: gain.Warn, Text: text}
}

// passOrWarn is a check whose warning adds what to do.
func passOrWarn(name string, ok bool, text, remedy string) gain.Check {
	if ok {
		return gain.Check{Name: name, Status: gain.Pass, Text: text}
	}
	return warning(name, text+": "+remedy)
}

// checkFiles fails unless the files of the spec stayed unchanged over the campaign.
func (c *Campaign) checkFiles() gain.Check {
	const name = "same_files"
	if len(c.Spec.Same) == 0 {
		return gain.Check{Name: name, Status: gain.Unknown, Text: "no files to hold constant were named (--same)"}
	}
	first := make(map[string]string)
	for _, l := range c.Launches {
		a, ok := l.Done()
		if !ok {
			continue
		}
		for _, f := range a.Files {
			if have, known := first[f.Path]; known && have != f.SHA256 {
				return gain.Check{Name: name, Status: gain.Fail,
					Text: fmt.Sprintf("%s changed before launch %d (SHA-256 %.12s, was %.12s)", f.Path, l.Position,
						f.SHA256, have)}
			}
			first[f.Path] = f.SHA256
		}
	}
	return gain.Check{Name: name, Status: gain.Pass, Text: quantity.Count(len(c.Spec.Same), "file") +
		" unchanged in every launch"}
}

// checkSessions warns of pairs whose launches were not adjacent in time.
func (c *Campaign) checkSessions() gain.Check {
	const name = "one_session"
	var split []string
	sessions := make(map[int]bool)
	for _, pair := range c.Pairs(Timed) {
		a, _ := pair[0].Done()
		b, _ := pair[1].Done()
		sessions[a.Session], sessions[b.Session] = true, true
		if a.Session != b.Session {
			split = append(split, fmt.Sprint(pair[0].Pair))
		}
	}
	changed := c.changedBetweenSessions()
	switch {
	case len(changed) > 0:
		return gain.Check{Name: name, Status: gain.Warn,
			Text: fmt.Sprintf("%s changed between the %d sessions, so pairs of different sessions are less comparable: repeat "+
				"the campaign in one session", strings.Join(changed, ", "), len(sessions))}
	case len(split) > 0:
		return gain.Check{Name: name, Status: gain.Warn,
			Text: fmt.Sprintf("interrupted inside pair %s: its launches are not adjacent in time",
				strings.Join(split, ", "))}
	case c.Spec.Design.Within():
		return gain.Check{Name: name, Status: gain.Pass, Text: "each launch holds all arms in one session"}
	case len(sessions) > 1:
		return gain.Check{Name: name, Status: gain.Pass, Text: fmt.Sprintf("ran in %s, interrupted between pairs only",
			quantity.Count(len(sessions), "session"))}
	}
	return gain.Check{Name: name, Status: gain.Pass, Text: "all pairs ran in one session"}
}

// changedBetweenSessions names the recorded variables, other than the
// treatment's, that differ between launches of the same arm.
func (c *Campaign) changedBetweenSessions() []string {
	changed := make(map[string]bool)
	for _, arm := range gain.Arms {
		attempts := c.counted(arm)
		for _, a := range attempts {
			for _, name := range difference.Variables(attempts[0].Environment, a.Environment) {
				changed[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(changed))
}

// checkRetries reports attempts that failed or were interrupted before the one that
// counts, and launches that left processes behind at any attempt.
func (c *Campaign) checkRetries() gain.Check {
	const name = "first_attempts"
	failed, interrupted, left := 0, 0, 0
	for _, l := range c.Launches {
		for _, a := range l.Attempts {
			switch a.State {
			case Failed:
				failed++
			case Interrupted:
				interrupted++
			}
		}
		if slices.ContainsFunc(l.Attempts, func(a Attempt) bool { return slices.Contains(a.Warnings, leftBehind) }) {
			left++
		}
	}
	var texts []string
	for _, t := range []struct {
		n          int
		noun, what string
	}{{failed, "attempt", " failed"}, {interrupted, "attempt", " interrupted"},
		{left, "launch", " left processes behind"}} {
		if t.n > 0 {
			texts = append(texts, quantity.Count(t.n, t.noun)+t.what)
		}
	}
	if len(texts) == 0 {
		return gain.Check{Name: name, Status: gain.Pass, Text: "every launch finished at its first attempt"}
	}
	return warning(name, strings.Join(texts, ", "))
}

// launcherWarnings are the other things said about launches, each once.
func (c *Campaign) launcherWarnings() string {
	var texts []string
	for _, l := range c.Launches {
		a, ok := l.Done()
		if !ok {
			continue
		}
		for _, w := range a.Warnings {
			if w != leftBehind && !slices.Contains(texts, w) {
				texts = append(texts, w)
			}
		}
	}
	return strings.Join(texts, "; ")
}

// Differences between the arms beyond which the GPUs' state is worth a warning.
const (
	clockTolerance       = 0.02 // of the mean SM clock, relative
	temperatureTolerance = 5.0  // of the mean temperature, °C
)

// checkGPUs compares what nvidia-smi showed beside the launches; nil when it was
// never asked.
func (c *Campaign) checkGPUs() []gain.Check {
	seen := false
	others := make(map[string]bool)
	var clock, temperature [2][]float64
	for i, arm := range gain.Arms {
		for _, a := range c.counted(arm) {
			for _, g := range a.GPUs {
				seen = true
				if g.BusyLooks > 0 && g.ClockMHz.Defined() { // an idle GPU has other clocks
					clock[i] = append(clock[i], g.ClockMHz.Float64())
				}
				if g.TemperatureC.Defined() {
					temperature[i] = append(temperature[i], g.TemperatureC.Float64())
				}
				for _, p := range g.Processes {
					if !p.Ours {
						others[holder(g, p)] = true
					}
				}
			}
		}
	}
	if !seen {
		return nil
	}
	checks := []gain.Check{{Name: "other_processes", Status: gain.Pass,
		Text: "no other process used the GPUs at the start of a launch"}}
	if len(others) > 0 {
		checks[0] = warning("other_processes",
			"other processes used the GPUs: "+strings.Join(slices.Sorted(maps.Keys(others)),
				", ")+": stop them before the campaign")
	}
	if c.Spec.Design.Within() { // both arms ran on the same
		return checks
	}
	normal, perfect := c.Spec.Builds.Called(gain.Normal), c.Spec.Builds.Called(gain.Perfect)
	if a, b := stat.Mean(clock[0], nil), stat.Mean(clock[1], nil); a > 0 && b > 0 {
		checks = append(checks, passOrWarn("clocks", math.Abs(a-b) <= clockTolerance*max(a, b),
			fmt.Sprintf("mean SM clock while busy: %s %.0f MHz, %s %.0f MHz", normal, a, perfect, b),
			"lock the clocks with nvidia-smi --lock-gpu-clocks"))
	}
	if a, b := stat.Mean(temperature[0], nil), stat.Mean(temperature[1], nil); a > 0 && b > 0 {
		checks = append(checks, passOrWarn("temperature", math.Abs(a-b) <= temperatureTolerance,
			fmt.Sprintf("mean GPU temperature: %s %.1f °C, %s %.1f °C", normal, a, perfect, b),
			"warm the GPUs up first (--warm-up)"))
	}
	return checks
}

// holder names a process on a GPU that is not the campaign's.
func holder(g launch.GPU, p launch.GPUProcess) string {
	if p.Campaign != "" {
		return fmt.Sprintf("%s (GPU %d, process %d of the earlier campaign %s)", p.Name, g.Index, p.PID, p.Campaign)
	}
	return fmt.Sprintf("%s (GPU %d)", p.Name, g.Index)
}

// reportTolerance is how much longer than its launch a report may say that its benchmark took,
// by the difference of two clocks.
const reportTolerance = 0.01

// checkReports fails where the benchmark of a report took longer than the run that printed it: it tells of
// another one.
func (c *Campaign) checkReports() (gain.Check, bool) {
	for _, l := range c.Launches {
		a, ok := l.Done()
		if !ok || l.Kind != Timed {
			continue
		}
		for _, run := range a.views() {
			if run.Result == nil || run.DurationNS == 0 {
				continue
			}
			took, ok := run.Result.Metric("duration")
			if reported := 1e6 * float64(took.Value); ok && reported > (1+reportTolerance)*float64(run.DurationNS) {
				return gain.Check{Name: "report_time", Status: gain.Fail, Text: fmt.Sprintf(
					"a report in launch %d says that its benchmark took %s, but its run took %s: it tells of another one",
					l.Position, quantity.Duration(reported), quantity.Duration(float64(run.DurationNS)))}, true
			}
		}
	}
	return gain.Check{}, false
}

// cpuTolerance is the share of a machine's cores beyond which the work of other
// processes during a launch is worth a warning.
const cpuTolerance = 0.1

// checkCPU warns when other processes kept the processors busy during a counted
// launch, by the cores of the machine that launched it. Launches of less than half a
// second are too short for the system's ticks and are left out.
func (c *Campaign) checkCPU() gain.Check {
	const name = "other_load"
	var worst Attempt
	share, at := router.Undefined(), 0
	for _, l := range c.Launches {
		a, ok := l.Done()
		if !ok || l.Kind != Timed || !a.OthersCPU.Defined() || a.Cores == 0 || a.DurationNS < int64(time.Second/2) {
			continue
		}
		if of := a.OthersCPU / router.Number(a.Cores); !(of <= share) {
			worst, share, at = a, of, l.Position
		}
	}
	if !share.Defined() {
		return gain.Check{Name: name, Status: gain.Unknown,
			Text: "the CPU use of other processes was not recorded, or the launches were too short"}
	}
	return passOrWarn(name, share <= cpuTolerance,
		fmt.Sprintf("other processes used at most %.1f of %s, in launch %d", worst.OthersCPU,
			quantity.Count(worst.Cores, "core"), at), "stop them")
}
