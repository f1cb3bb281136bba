package bench

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/moebalance/moebalance/compare/bench/difference"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
)

// checks answers what only the launches themselves can. Work, order and drift are for
// package gain, which has the values.
func (c *Campaign) checks() []gain.Check {
	checks := append([]gain.Check{c.checkFiles(), c.checkSessions(), c.checkRetries(), c.checkCPU()}, c.checkGPUs()...)
	if check, ok := c.checkReports(); ok {
		checks = append(checks, check)
	}
	if check, ok := c.checkSlots(); ok {
		checks = append(checks, check)
	}
	if c.Spec.Design.Within() {
		checks = append(checks, c.checkPrompts())
	}
	if c.Spec.Treatment.Chance() {
		checks = append(checks,
			gain.NewCheck("treatment", gain.Warn, "chance"))
	}
	if said := c.launcherWarnings(); len(said) > 0 {
		checks = append(checks, gain.NewCheck("launcher", gain.Warn, "said", "messages", said))
	}
	return checks
}

// passOrWarn is a check of two cases, pass and warn.
func passOrWarn(name string, ok bool, args ...any) gain.Check {
	if ok {
		return gain.NewCheck(name, gain.Pass, "pass", args...)
	}
	return gain.NewCheck(name, gain.Warn, "warn", args...)
}

// checkFiles fails unless the files of the spec stayed unchanged over the campaign.
func (c *Campaign) checkFiles() gain.Check {
	const name = "same_files"
	if len(c.Spec.Same) == 0 {
		return gain.NewCheck(name, gain.Unknown, "unnamed")
	}
	first := make(map[string]string)
	for _, l := range c.Launches {
		a, ok := l.Done()
		if !ok {
			continue
		}
		for _, f := range a.Files {
			if have, known := first[f.Path]; known && have != f.SHA256 {
				return gain.NewCheck(name, gain.Fail, "changed", "file", f.Path, "launch", l.Position, "sum",
					fmt.Sprintf("%.12s", f.SHA256), "before", fmt.Sprintf("%.12s", have))
			}
			first[f.Path] = f.SHA256
		}
	}
	return gain.NewCheck(name, gain.Pass, "unchanged", "files", len(c.Spec.Same))
}

// checkSessions warns of pairs whose launches were not adjacent in time.
func (c *Campaign) checkSessions() gain.Check {
	const name = "one_session"
	var split []int
	sessions := make(map[int]bool)
	for _, pair := range c.Pairs() {
		a, _ := pair[0].Done()
		b, _ := pair[1].Done()
		sessions[a.Session], sessions[b.Session] = true, true
		if a.Session != b.Session {
			split = append(split, pair[0].Pair)
		}
	}
	changed := c.changedBetweenSessions()
	switch {
	case len(changed) > 0:
		return gain.NewCheck(name, gain.Warn, "changed", "variables", changed, "sessions", len(sessions))
	case len(split) > 0:
		return gain.NewCheck(name, gain.Warn, "split", "pairs", split)
	case c.Spec.Design.Within():
		return gain.NewCheck(name, gain.Pass, "within")
	case len(sessions) > 1:
		return gain.NewCheck(name, gain.Pass, "several", "sessions", len(sessions))
	}
	return gain.NewCheck(name, gain.Pass, "one")
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
// counts, and launches that left processes behind at any attempt. Where more than a tenth of the launches
// count only because others failed, what fails may choose the result.
func (c *Campaign) checkRetries() gain.Check {
	const name = gain.CheckAttempts
	failed, interrupted, left, timed := 0, 0, 0, 0
	for _, l := range c.Launches {
		if l.Kind == Timed {
			timed++
		}
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
	if failed > max(1, timed/10) {
		return gain.NewCheck(gain.CheckAttempts, gain.Warn, "selected", "failed", failed, "launches", timed)
	}
	return passOrWarn(name, failed+interrupted+left == 0, "failed", failed, "interrupted", interrupted, "left", left)
}

// launcherWarnings are the other things said about launches, each once.
func (c *Campaign) launcherWarnings() (texts []string) {
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
	return texts
}

// clockTolerance is the relative difference of the arms' mean SM clocks beyond which they are worth a warning.
const clockTolerance = 0.02

// checkGPUs compares what nvidia-smi showed beside the launches; nil when it was
// never asked.
func (c *Campaign) checkGPUs() []gain.Check {
	seen := false
	others := make(map[string]bool)
	var clock [2][]float64
	for i, arm := range gain.Arms {
		for _, a := range c.counted(arm) {
			for _, g := range a.GPUs {
				seen = true
				if g.BusyLooks > 0 && g.ClockMHz.Defined() { // an idle GPU has other clocks
					clock[i] = append(clock[i], g.ClockMHz.Float64())
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
	checks := []gain.Check{passOrWarn("other_processes", len(others) == 0, "processes", slices.Sorted(maps.Keys(others)))}
	if c.Spec.Design.Within() { // both arms ran on the same
		return checks
	}
	normal, perfect := c.Spec.Builds.Called(gain.Normal), c.Spec.Builds.Called(gain.Perfect)
	if a, b := stat.Mean(clock[0], nil), stat.Mean(clock[1], nil); a > 0 && b > 0 {
		checks = append(checks, passOrWarn("clocks", math.Abs(a-b) <= clockTolerance*max(a, b), "arm", normal, "mhz", a,
			"other", perfect, "others", b))
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
		for _, run := range a.pointAttempts() {
			if run.Result == nil || run.DurationNS == 0 {
				continue
			}
			took, ok := run.Result.Metric("duration")
			if reported := 1e6 * float64(took.Value); ok && reported > (1+reportTolerance)*float64(run.DurationNS) {
				return gain.NewCheck("report_time", gain.Fail, "longer", "launch", l.Position, "reported_ns", reported, "ns",
					run.DurationNS), true
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
		return gain.NewCheck(name, gain.Unknown, "unrecorded")
	}
	return passOrWarn(name, share <= cpuTolerance, "used", worst.OthersCPU, "cores", worst.Cores, "launch", at)
}
