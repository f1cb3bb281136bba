package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/quantity"
)

// foreign says which of the files of counts is not written by this launch; empty where all
// are. A copy that has a new time is not told from a file of its own.
func (a Attempt) foreign(path, out string) (found string) {
	own, err := filepath.Abs(out)
	if err == nil {
		own, err = filepath.EvalSymlinks(own)
	}
	root, rootErr := filepath.EvalSymlinks(path)
	if err := errors.Join(err, rootErr); err != nil {
		return err.Error()
	}
	_ = filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		name, _ := filepath.Rel(filepath.Dir(root), file)
		target, linkErr := filepath.EvalSymlinks(file)
		info, statErr := os.Stat(target)
		switch {
		case errors.Join(err, linkErr, statErr) != nil || found != "": // what cannot be read was not read either
		case !strings.HasPrefix(target, own+string(filepath.Separator)):
			found = name + " is a link to " + target + ", outside this launch's folder"
		case info.IsDir():
		case linked(info):
			found = name + " is a hard link to another file"
		case info.ModTime().Before(a.Made):
			found = fmt.Sprintf("%s was last written before this launch began (%s)", name,
				info.ModTime().Format("2006-01-02 15:04:05"))
		}
		return nil
	})
	return found
}

// recordedShare is the share of a launch's steps whose slots a folder of the hook holds; 0
// where it does not say.
func recordedShare(folder string) (share float64) {
	paths, _ := filepath.Glob(filepath.Join(folder, "moebalance-hook.rank*.json"))
	for _, path := range paths {
		var said struct {
			Steps    float64 `json:"steps"`
			Recorded float64 `json:"steps_recorded"`
		}
		if text, err := input.ReadFile(path, 1<<20); err == nil && json.Unmarshal(text, &said) == nil &&
			said.Steps > 0 {
			share = max(share, min(1, said.Recorded/said.Steps))
		}
	}
	return share
}

// reportedTokens are those that the launch's reports say of its own engine; false where
// one does not say.
func (a Attempt) reportedTokens() (tokens float64, known bool) {
	results := []PointRun{{Attempt: a.Number, Result: a.Result}}
	if len(a.Points) > 0 {
		results = a.Points
	}
	for _, p := range results {
		switch {
		case p.Attempt != a.Number:
		case p.Result == nil || !p.Result.Work.InputTokens.Known && !p.Result.Work.OutputTokens.Known:
			return 0, false
		default:
			tokens += float64(p.Result.Work.InputTokens.N + p.Result.Work.OutputTokens.N)
		}
	}
	return tokens, tokens > 0
}

// tokensOff is the factor by which counted and reported tokens may differ: prefix caches,
// padding, drafts, preempted requests, warm-up and idle ranks part them.
const tokensOff = 2

// otherWork says how the counts contradict the reported tokens; empty where they do not.
// Without a top-k, of which the counts of a layer are a multiple, too few slots contradict
// alone; without both kinds of tokens, too.
func (a Attempt) otherWork() string {
	c := a.Counted
	reported, known := a.reportedTokens()
	if !known || len(c.Slots) == 0 {
		return ""
	}
	slots := 0.0
	for _, n := range c.Slots {
		slots += float64(n)
	}
	counted := slots / float64(len(c.Slots)) / float64(max(1, c.TopK))
	if c.Recorded > 0 {
		counted /= c.Recorded
	}
	whole := c.TopK > 0 && !slices.ContainsFunc(a.views(), func(v Attempt) bool {
		return v.Result == nil || !v.Result.Work.InputTokens.Known || !v.Result.Work.OutputTokens.Known
	})
	if counted*tokensOff >= reported && (!whole || counted <= tokensOff*reported) {
		return ""
	}
	return fmt.Sprintf("they hold %s per layer, the report says %s: record all steps of the measured requests, and no others",
		quantity.Count(int64(math.Round(counted)), "token"), quantity.Count(int64(reported), "token"))
}

// placing finds options, variables and settings that put experts elsewhere than
// contiguously, with their values.
var placing = regexp.MustCompile(
	`(?i)(?:^|[\s"'{,])(-{0,2}(?:[a-z0-9_.-]*(?:expert[-_]?(?:placement|location|map)|moebalance_placement|eplb|redundant[-_]experts|load[-_]?balancer)[a-z0-9_.-]*|placement))(?:["']?\s*[=:]\s*["']?|["']?\s+["']?|["']?$)([^\s"',}]*)`)

// ordinary are values of these that leave experts contiguous.
var ordinary = []string{"0", "false", "off", "none", "keep", "linear", "trivial", "contiguous"}

// placement is the option or variable by which the launch places experts, empty for none,
// and the file that it names, if it names one.
func (a Attempt) placement(folder string) (named, file string) {
	texts := []string{strings.Join(a.Arguments, " ")}
	for _, name := range slices.Sorted(maps.Keys(a.Environment)) {
		if a.Environment[name] != "" {
			texts = append(texts, name+"="+a.Environment[name])
		}
	}
	for _, text := range texts {
		for _, m := range placing.FindAllStringSubmatch(text, -1) {
			if slices.Contains(ordinary, strings.ToLower(m[2])) {
				continue
			}
			named = m[1]
			if info, err := os.Stat(inFolder(folder, m[2])); m[2] != "" && err == nil && info.Mode().IsRegular() {
				return named, inFolder(folder, m[2])
			}
		}
	}
	return named, file
}

// slotTolerance is the relative difference of counted slots up to which two arms did the
// same work.
const slotTolerance = 0.01

// checkSlots compares the counted slots of both launches of a pair, layer by layer.
func (c *Campaign) checkSlots() (gain.Check, bool) {
	const name = "equal_slots"
	compared, tolerance := 0, max(slotTolerance, c.Spec.WorkTolerance)
	for _, pair := range c.Pairs(Timed) {
		a, _ := pair[0].Done()
		b, _ := pair[1].Done()
		if a.Counted == nil || b.Counted == nil || len(a.Counted.Slots)+len(b.Counted.Slots) == 0 || a.pieced() ||
			b.pieced() {
			continue
		}
		compared++
		for layer := range max(layers(a.Counted.Slots), layers(b.Counted.Slots)) {
			n, m := a.Counted.Slots[layer], b.Counted.Slots[layer]
			if math.Abs(float64(n-m)) > tolerance*float64(max(n, m)) {
				return gain.Check{Name: name, Status: gain.Fail,
					Text: fmt.Sprintf("the arms counted different work: pair %d, layer %d: %s %s, %s %s (tolerance %s)",
						pair[0].Pair, layer, pair[0].Arm, quantity.Count(n, "slot"), pair[1].Arm,
						quantity.Count(m, "slot"),
						quantity.Percent(router.Number(tolerance)))}, true
			}
		}
	}
	return gain.Check{Name: name, Status: gain.Pass, Text: fmt.Sprintf("counted slots of every layer within %s in %s",
		quantity.Percent(router.Number(tolerance)), quantity.Count(compared, "pair"))}, compared > 0
}

// pieced reports whether a launch took over points that another engine measured, whose
// slots its counts lack.
func (a Attempt) pieced() bool {
	return slices.ContainsFunc(a.Points, func(p PointRun) bool { return p.Attempt != a.Number })
}

// layers is one more than the last layer.
func layers(slots map[int]int64) (n int) {
	for layer := range slots {
		n = max(n, layer+1)
	}
	return n
}
