package evidence

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/quantity"
)

// Foreign says which of the files of counts at a path is not written by the launch whose folder
// out was made then; empty where all are. A copy that has a new time is not told from a file of its own.
func Foreign(path, out string, made time.Time) (found string) {
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
		case info.ModTime().Before(made):
			found = fmt.Sprintf("%s was last written before this launch began (%s)", name,
				info.ModTime().Format("2006-01-02 15:04:05"))
		}
		return nil
	})
	return found
}

// RecordedShare is the share of a launch's steps whose slots a folder of the hook holds; 0
// where it does not say.
func RecordedShare(folder string) (share float64) {
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

// placing finds options, variables and settings that put experts elsewhere than
// contiguously, with their values.
var placing = regexp.MustCompile(
	`(?i)(?:^|[\s"'{,])(-{0,2}(?:[a-z0-9_.-]*(?:expert[-_]?(?:placement|location|map)|moebalance_placement|eplb|` +
		`redundant[-_]experts|load[-_]?balancer)[a-z0-9_.-]*|placement))(?:["']?\s*[=:]\s*["']?|["']?\s+["']?|` +
		`["']?$)([^\s"',}]*)`)

// ordinary are values of these that leave experts contiguous.
var ordinary = []string{"0", "false", "off", "none", "keep", "linear", "trivial", "contiguous"}

// Placement is the option or variable by which a launch places experts, empty for none,
// and the file that it names, if it names one.
func Placement(arguments []string, environment map[string]string, folder string) (named, file string) {
	texts := []string{strings.Join(arguments, " ")}
	for _, name := range slices.Sorted(maps.Keys(environment)) {
		if environment[name] != "" {
			texts = append(texts, name+"="+environment[name])
		}
	}
	for _, text := range texts {
		for _, m := range placing.FindAllStringSubmatch(text, -1) {
			if slices.Contains(ordinary, strings.ToLower(m[2])) {
				continue
			}
			named = m[1]
			if info, err := os.Stat(InFolder(folder, m[2])); m[2] != "" && err == nil && info.Mode().IsRegular() {
				return named, InFolder(folder, m[2])
			}
		}
	}
	return named, file
}

// Load is the load of the worst layer of a launch, over ranks or over experts.
type Load struct {
	Over           string
	MaxMean, Floor router.Number // max/mean, and the least that whole slots allow, where that is known
}

// Loads are those that were measured, over ranks before experts.
type Loads []Load

// Measured are the loads of ranks and of experts that are known.
func Measured(ranks, rankFloor, experts, expertFloor router.Number) Loads {
	return slices.DeleteFunc(Loads{{"ranks", ranks, rankFloor}, {"experts", experts, expertFloor}},
		func(l Load) bool { return !l.MaxMean.Defined() })
}

func (w Loads) String() string {
	if len(w) == 0 {
		return "no loads reported"
	}
	var texts []string
	for _, l := range w {
		text := quantity.Ratio(l.MaxMean) + " over " + l.Over
		if l.Floor.Defined() {
			text += " (floor " + quantity.Ratio(l.Floor) + ")"
		}
		texts = append(texts, text)
	}
	return "worst layer max/mean " + strings.Join(texts, ", ")
}

// Within reports whether there are any, and max/mean of all is at most so many times its
// floor; where that is not known, times the 1 of large batches.
func (w Loads) Within(limit router.Number) bool {
	return len(w) > 0 && !slices.ContainsFunc(w, func(l Load) bool {
		floor := router.Number(1)
		if l.Floor.Defined() {
			floor = l.Floor
		}
		return l.MaxMean > limit*floor
	})
}

// GroupLimited is the model that words name whose routing is limited to groups
// of experts, empty where they name none: a preset's name, perhaps with a suffix, or a
// folder with its config.json.
func GroupLimited(words []string, folder string) string {
	for _, word := range words {
		if _, value, ok := strings.Cut(word, "="); ok {
			word = value
		}
		if config, err := input.ReadFile(filepath.Join(InFolder(folder, word), "config.json"), 64<<20); err == nil {
			if m, err := router.ParseConfig(config, ""); err == nil && m.Shape.Grouped() {
				return word
			}
		}
		base := strings.ToLower(filepath.Base(word))
		for _, m := range router.Models() {
			if m.Shape.Grouped() && strings.HasPrefix(base, m.Name) {
				return word
			}
		}
	}
	return ""
}
