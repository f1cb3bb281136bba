package bench

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/bench/control"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/gain"
)

// ArmSpec is what sets an arm apart from the others.
type ArmSpec struct {
	Name  gain.Arm          `json:"name"`
	Env   map[string]string `json:"env,omitempty"`   // variables set in this arm only
	Flags []string          `json:"flags,omitempty"` // appended to the server, or to the command where there is none
}

// ParseArm reads NAME=SPEC: a router such as target:1.2, the switch of an engine (peer:sglang), or
// variables NAME=VALUE and then flags, as a shell splits them. NAME alone is an arm that {arm} in the
// command sets apart.
func ParseArm(s string) (ArmSpec, error) {
	name, list, _ := strings.Cut(s, "=")
	a := ArmSpec{Name: gain.Arm(strings.TrimSpace(name))}
	if err := a.checkName(); err != nil {
		return a, err
	}
	if peer, ok := strings.CutPrefix(list, "peer:"); ok {
		t, err := ParseTreatment(peer)
		a.Env, a.Flags = t.Perfect, t.Flags
		return a, err
	}
	words, err := launch.Words(list)
	switch {
	case strings.TrimSpace(list) == "":
		return a, nil
	case err != nil:
		return a, fmt.Errorf("arm %q: %w", name, err)
	}
	if router, err := control.IsRouter(words[0]); router && len(words) == 1 {
		a.Env = map[string]string{routerVariable: words[0]}
		return a, err
	}
	for i, w := range words {
		variable, value, ok := strings.Cut(w, "=")
		if !ok || !launch.VariableName.MatchString(variable) {
			a.Flags = words[i:]
			break
		}
		if a.Env == nil {
			a.Env = make(map[string]string)
		}
		a.Env[variable] = value
	}
	if len(a.Flags) > 0 && !strings.HasPrefix(a.Flags[0], "-") {
		return a, fmt.Errorf("arm %q: %q is neither a router, VARIABLE=VALUE nor a flag", name, a.Flags[0])
	}
	return a, nil
}

func (a ArmSpec) checkName() error {
	if len(a.Name) > longestArmName || !armName.MatchString(string(a.Name)) || strings.Contains(string(a.Name), "..") {
		return fmt.Errorf("arm %q: want letters, digits and . _ + - only, a letter or digit first, at most 64", a.Name)
	}
	return nil
}

// BuildsOf are the names of two arms of which one has nothing of its own: two builds. Other arms
// stand beside the normal and the perfect one.
func BuildsOf(arms []ArmSpec) (names gain.Builds) {
	plain := func(a ArmSpec) bool { return len(a.Env)+len(a.Flags) == 0 }
	ours := func(a ArmSpec) bool { return slices.Contains(gain.Arms[:], a.Name) }
	if len(arms) == 2 && slices.ContainsFunc(arms, plain) && !slices.ContainsFunc(arms, ours) {
		names = gain.Builds{arms[0].Name, arms[1].Name}
	}
	return names
}

// arms are all, the further ones between the normal and the perfect one.
func (s Spec) arms() []gain.Arm {
	return slices.Concat([]gain.Arm{gain.Normal}, s.more(), []gain.Arm{gain.Perfect})
}

// more are the further arms.
func (s Spec) more() (more []gain.Arm) {
	for _, a := range s.Arms {
		if !slices.Contains(gain.Arms[:], a.Name) && !slices.Contains(s.Builds[:], a.Name) {
			more = append(more, a.Name)
		}
	}
	return more
}

// arm is what sets an arm apart.
func (s Spec) arm(a gain.Arm) ArmSpec {
	called, own := s.Builds.Called(a), ArmSpec{Name: a}
	if i := slices.IndexFunc(s.Arms, func(o ArmSpec) bool { return o.Name == a || o.Name == called }); i >= 0 {
		own = s.Arms[i]
	}
	if a == gain.Perfect {
		own.Flags = slices.Concat(own.Flags, s.Treatment.Flags)
	}
	return own
}

// plan is the order of the launches.
func (s Spec) plan() []Launch { return s.Design.plan(s.arms(), s.perLaunch()) }

// mostArms bounds a design: blocks of more are too long to be at one time.
const mostArms = 6

// armName is a name that can stand in a path, in a table and in a command.
var armName = regexp.MustCompile(`^[\pL\pN][\pL\pN._+-]*$`)

// longestArmName bounds a name in bytes.
const longestArmName = 64

func (s Spec) checkArms() error {
	for _, name := range slices.Concat(s.Builds[:], s.more()) {
		if err := (ArmSpec{Name: name}).checkName(); name != "" && err != nil {
			return err
		}
	}
	for i, a := range s.Arms {
		if slices.ContainsFunc(s.Arms[:i], func(o ArmSpec) bool { return o.Name == a.Name }) {
			return fmt.Errorf("--arm %s is given twice", a.Name)
		}
		for name := range a.Env {
			if _, ok := s.Treatment.Perfect[name]; ok {
				return fmt.Errorf("--arm %s sets %s, which is the switch of the perfect arm: choose another --treatment", a.Name,
					name)
			}
		}
	}
	words := slices.Concat(s.Command.Server, s.Command.Normal)
	switch {
	case len(s.arms()) > mostArms:
		return fmt.Errorf("%d arms: want at most %d", len(s.arms()), mostArms)
	case s.Builds.Named() && s.same(s.Builds[0], s.Builds[1]) && !in(words, "arm"):
		return fmt.Errorf("nothing sets the arms apart: write {arm} in the command, or give --arm %s='VARIABLE=VALUE "+
			"--flag'", s.Builds[1])
	}
	for _, a := range s.more() {
		if s.same(a, "") && !in(words, "arm") {
			return fmt.Errorf("nothing sets the arm %s apart: give --arm %[1]s='VARIABLE=VALUE --flag', or write {arm} in the "+
				"command", a)
		}
	}
	return nil
}

// same reports whether nothing sets two arms apart but their names.
func (s Spec) same(a, b gain.Arm) bool {
	x, y := s.arm(a), s.arm(b)
	return maps.Equal(x.Env, y.Env) && slices.Equal(x.Flags, y.Flags)
}

// environ is base as the arm sees it: of the treatment's variables, a normal arm has none.
func (s Spec) environ(base []string, a gain.Arm) []string {
	return launch.Environ(base, slices.Concat(s.Treatment.variables(a, ""), launch.Variables(s.arm(a).Env)))
}

// declaredByName reports whether naming an arm declares what --arm gives it: a build or a
// further arm, which stand for it. Normal and perfect stand for the routers alone, and so does every arm
// within a launch.
func (s Spec) declaredByName(a gain.Arm) bool {
	return s.Builds.Named() || a != gain.Perfect && !s.Design.Within()
}

// declares reports whether an environment variable may differ between the normal arm and
// another.
func (s Spec) declares(name string, a gain.Arm) bool {
	_, treatment := s.Treatment.Perfect[name]
	_, base := s.arm(gain.Normal).Env[name]
	_, own := s.arm(a).Env[name]
	return treatment && a == gain.Perfect || s.declaredByName(a) && (base || own)
}

// armVariables are the variables that the treatment and all arms set.
func (s Spec) armVariables() map[string]string {
	own := maps.Clone(s.Treatment.Perfect)
	if own == nil {
		own = make(map[string]string)
	}
	for _, a := range s.Arms {
		maps.Copy(own, a.Env)
	}
	return own
}
