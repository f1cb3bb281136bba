package bench

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/router/quantity"
)

// Evidence is what the finished launches say about the treatment and about
// everything else that may have differed between the arms. Traces of the profiled
// pair speak for ranks of which the launches themselves prove nothing.
func (c *Campaign) Evidence(traces TraceProof) Evidence {
	e := Evidence{Checks: c.checks()}
	for _, known := range c.claims() {
		e.Proofs = append(e.Proofs, known.proof(traces))
	}
	seen := make(map[Difference]bool)
	for _, pair := range c.Pairs(Timed) {
		normal, perfect := armsOf(pair)
		e.Compared = true
		for _, d := range c.differences(normal, perfect) {
			if !seen[d] {
				seen[d] = true
				e.Differences = append(e.Differences, d)
			}
		}
	}
	return e
}

// armsOf are the finished attempts of a timed pair by arm.
func armsOf(pair [2]Launch) (normal, perfect Attempt) {
	a, _ := pair[0].Done()
	b, _ := pair[1].Done()
	if pair[0].Arm == Perfect {
		return b, a
	}
	return a, b
}

// ranks is how many ranks a launch must prove: those of the spec, else those
// that its report names; 0 if unknown.
func (c *Campaign) ranks(a Attempt) int {
	if c.Spec.Ranks == 0 && a.Result != nil {
		return a.Result.Proof.Ranks
	}
	return c.Spec.Ranks
}

// differences compares what was recorded of the two launches of a pair.
func (c *Campaign) differences(normal, perfect Attempt) []Difference {
	var found []Difference
	for _, name := range slices.Sorted(maps.Keys(either(normal.Environment, perfect.Environment))) {
		a, inNormal := normal.Environment[name]
		b, inPerfect := perfect.Environment[name]
		if a == b && inNormal == inPerfect {
			continue
		}
		_, declared := c.Spec.Treatment.Perfect[name]
		found = append(found, Difference{Kind: "environment", Name: name, Normal: setTo(a, inNormal), Perfect: setTo(b, inPerfect), Declared: declared})
	}
	if d, differ := c.arguments(normal, perfect); differ {
		found = append(found, d)
	}
	for i, f := range normal.Files {
		if i < len(perfect.Files) && perfect.Files[i].SHA256 != f.SHA256 {
			found = append(found, Difference{Kind: "file", Name: f.Path, Normal: f.SHA256, Perfect: perfect.Files[i].SHA256})
		}
	}
	if a, b := identities(normal.GPUs), identities(perfect.GPUs); a != b && a != "" && b != "" {
		found = append(found, Difference{Kind: "gpu", Name: "identity", Normal: a, Perfect: b})
	}
	return found
}

func setTo(value string, set bool) string {
	if !set {
		return "not set"
	}
	return value
}

// arguments compares the words of the arms, as the spec gives them. The words
// themselves differ anyway in placeholders and in what launchers pass on.
func (c *Campaign) arguments(normal, perfect Attempt) (Difference, bool) {
	a, b := c.Spec.Command.Of(Normal), c.Spec.Command.Of(Perfect)
	if !slices.Equal(a, b) {
		return Difference{Kind: "argument", Name: "command", Normal: launch.Quote(a), Perfect: launch.Quote(b), Declared: true}, true
	}
	words := slices.Concat(c.Spec.Command.Server, a)
	if slices.ContainsFunc(words, func(w string) bool { return strings.Contains(w, "{arm}") }) {
		return Difference{Kind: "argument", Name: "{arm}", Normal: launch.Quote(normal.Arguments), Perfect: launch.Quote(perfect.Arguments), Declared: true}, true
	}
	return Difference{}, false
}

// identities names GPUs by what must not change.
func identities(gpus []launch.GPU) string {
	var ids []string
	for _, g := range gpus {
		ids = append(ids, g.UUID+" "+g.Driver)
	}
	slices.Sort(ids)
	return strings.Join(ids, ", ")
}

// checks asks what only the launches themselves can answer. Work, order and
// drift are for the judge, who has the values.
func (c *Campaign) checks() []Check {
	checks := []Check{c.checkFiles(), c.checkSessions(), c.checkRetries(), c.checkOthers()}
	if gpus, ok := c.checkGPUs(); ok {
		checks = append(checks, gpus...)
	}
	if note := c.Spec.Treatment.Note; note != "" {
		checks = append(checks, Check{Name: "treatment", Status: Warn, Text: note})
	}
	if text := c.launcherWarnings(); text != "" {
		checks = append(checks, Check{Name: "launcher", Status: Warn, Text: text})
	}
	return checks
}

// checkFiles wants the files of the spec unchanged over the whole campaign.
func (c *Campaign) checkFiles() Check {
	const name = "same_files"
	if len(c.Spec.Same) == 0 {
		return Check{Name: name, Status: Unknown, Text: "no file was named that must stay the same"}
	}
	first := make(map[string]string)
	for _, l := range c.Launches {
		a, ok := l.Done()
		if !ok {
			continue
		}
		for _, f := range a.Files {
			if have, known := first[f.Path]; known && have != f.SHA256 {
				return Check{Name: name, Status: Fail, Text: fmt.Sprintf("%s changed before launch %d (SHA-256 %.12s, was %.12s)", f.Path, l.Position, f.SHA256, have)}
			}
			first[f.Path] = f.SHA256
		}
	}
	return Check{Name: name, Status: Pass, Text: fmt.Sprintf("%s of the same content at every launch", quantity.Count(len(c.Spec.Same), "file"))}
}

// checkSessions warns of pairs whose launches were not neighbours in time.
func (c *Campaign) checkSessions() Check {
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
		return Check{Name: name, Status: Warn, Text: fmt.Sprintf("%s changed between the %d sessions: pairs of one session are comparable, all together less so", strings.Join(changed, ", "), len(sessions))}
	case len(split) > 0:
		return Check{Name: name, Status: Warn, Text: fmt.Sprintf("the campaign was interrupted inside pair %s, whose launches are not neighbours", strings.Join(split, ", "))}
	case len(sessions) > 1:
		return Check{Name: name, Status: Pass, Text: fmt.Sprintf("run in %s, interrupted between pairs only", quantity.Count(len(sessions), "session"))}
	}
	return Check{Name: name, Status: Pass, Text: "all pairs were run without an interruption"}
}

// changedBetweenSessions names the recorded variables, other than the
// treatment's, that differ between launches of the same arm.
func (c *Campaign) changedBetweenSessions() []string {
	changed := make(map[string]bool)
	for _, arm := range Arms {
		attempts := c.counted(arm)
		for _, a := range attempts {
			for name := range either(attempts[0].Environment, a.Environment) {
				before, was := attempts[0].Environment[name]
				if now, is := a.Environment[name]; now != before || was != is {
					changed[name] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(changed))
}

// either has the keys of both maps.
func either(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	if all == nil {
		all = make(map[string]string)
	}
	maps.Copy(all, b)
	return all
}

// checkRetries reports attempts that failed or were interrupted before the one that
// counts, and launches that left processes behind at any attempt.
func (c *Campaign) checkRetries() Check {
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
	if failed+interrupted+left == 0 {
		return Check{Name: name, Status: Pass, Text: "every launch finished at its first attempt"}
	}
	return Check{Name: name, Status: Warn, Text: fmt.Sprintf("%s failed and %d were interrupted before their launch finished; %s left processes behind",
		quantity.Count(failed, "attempt"), interrupted, quantity.Count(left, "launch"))}
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

// Exports are the profiler's exports of an arm's profiled launch, sorted.
func (c *Campaign) Exports(arm Arm) []string {
	for _, l := range c.Launches {
		if a, ok := l.Done(); ok && l.Kind == Profiled && l.Arm == arm {
			paths, _ := filepath.Glob(filepath.Join(c.Folder, a.Folder, outName, "*.sqlite"))
			return paths
		}
	}
	return nil
}
