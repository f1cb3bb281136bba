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

// ParseArm reads NAME=SPEC: a router such as target:1.2, the switch of an engine (peer:sglang, which alone is its own
// name), or variables NAME=VALUE and then flags, as a shell splits them. NAME alone is an arm that {arm} in the command
// sets apart.
func ParseArm(s string) (a ArmSpec, err error) {
	if peer, ok := strings.CutPrefix(s, "peer:"); ok {
		s = peer + "=" + s
	}
	name, list, _ := strings.Cut(s, "=")
	a.Name = gain.Arm(strings.TrimSpace(name))
	if err := a.checkName(); err != nil {
		return a, err
	}
	if peer, ok := strings.CutPrefix(list, "peer:"); ok {
		t, err := ParseTreatment(peer)
		a.Env, a.Flags = t.Perfect, t.Flags
		return a, err
	}
	words, err := launch.Words(list)
	if err != nil {
		return a, fmt.Errorf("arm %q: %w", name, err)
	}
	if len(words) == 1 {
		if router, err := control.IsRouter(words[0]); router {
			a.Env = map[string]string{routerVariable: words[0]}
			return a, err
		}
	}
	for len(words) > 0 {
		variable, value, ok := strings.Cut(words[0], "=")
		if !ok || !launch.VariableName.MatchString(variable) {
			break
		}
		a.Env, words = merged(a.Env, map[string]string{variable: value}), words[1:]
	}
	if a.Flags = words; len(words) > 0 && !strings.HasPrefix(words[0], "-") {
		return a, fmt.Errorf("arm %q: %q is neither a router, VARIABLE=VALUE nor a flag", name, words[0])
	}
	return a, nil
}

// armName is a name that can stand in a path, in a table and in a command.
var armName = regexp.MustCompile(`^[\pL\pN][\pL\pN._+-]*$`)

func (a ArmSpec) checkName() error {
	if slices.Contains(gain.Arms[:], a.Name) {
		return fmt.Errorf("arm %s: normal and perfect differ in the router alone: want another name", a.Name)
	}
	if len(a.Name) > 64 || !armName.MatchString(string(a.Name)) || strings.Contains(string(a.Name), "..") {
		return fmt.Errorf("arm %q: want letters, digits and . _ + - only, a letter or digit first, at most 64", a.Name)
	}
	return nil
}

// plain reports an arm that its name alone sets apart.
func (a ArmSpec) plain() bool { return len(a.Env)+len(a.Flags) == 0 }

// BuildsOf are the names of two arms of which one has nothing of its own: two builds. Other arms
// stand beside the normal and the perfect one.
func BuildsOf(arms []ArmSpec) (names gain.Builds) {
	if len(arms) == 2 && slices.ContainsFunc(arms, ArmSpec.plain) {
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
		if !slices.Contains(s.Builds[:], a.Name) {
			more = append(more, a.Name)
		}
	}
	return more
}

// arm is what sets an arm apart: of the perfect one, its treatment, too.
func (s Spec) arm(a gain.Arm) ArmSpec {
	own := ArmSpec{Name: a}
	if i := slices.IndexFunc(s.Arms, func(o ArmSpec) bool { return o.Name == s.Builds.Called(a) }); i >= 0 {
		own = s.Arms[i]
	}
	if a == gain.Perfect {
		own.Env, own.Flags = merged(own.Env, s.Treatment.Perfect), slices.Concat(own.Flags, s.Treatment.Flags)
	}
	return own
}

// own are the variables that arms, and the treatment in both, set.
func (s Spec) own() (own map[string]string) {
	for _, arm := range s.arms() {
		own = merged(own, s.Treatment.Each, s.arm(arm).Env)
	}
	return own
}

// merged holds the entries of all maps, later ones before earlier ones.
func merged(all ...map[string]string) map[string]string {
	m := make(map[string]string)
	for _, one := range all {
		maps.Copy(m, one)
	}
	return m
}

func (s Spec) checkArms() error {
	words := slices.Concat(s.Command.Server, s.Command.Normal)
	for i, a := range s.Arms {
		if slices.ContainsFunc(s.Arms[:i], func(o ArmSpec) bool { return o.Name == a.Name }) {
			return fmt.Errorf("--arm %s is given twice", a.Name)
		}
		if a.plain() && !in(words, "arm") && (!s.Builds.Named() || i > 0 && s.Arms[0].plain()) {
			return fmt.Errorf("nothing sets the arm %s apart: give --arm %[1]s='VARIABLE=VALUE --flag', or write {arm} in the "+
				"command", a.Name)
		}
		for name := range a.Env {
			if _, ok := s.Treatment.Perfect[name]; ok {
				return fmt.Errorf("--arm %s sets %s, which is the switch of the perfect arm: choose another --treatment", a.Name,
					name)
			}
		}
	}
	return nil
}

// variables are what an arm sets, and the treatment's variables with the value off in any other arm.
func (s Spec) variables(a gain.Arm, off string) map[string]string {
	values := make(map[string]string)
	for name := range s.Treatment.Perfect {
		values[name] = off
	}
	return merged(values, s.arm(a).Env)
}

// declaredByName reports whether naming an arm declares what sets it apart: a build or a further arm, which stand for
// it. Normal and perfect stand for the routers alone, and so does every arm within a launch.
func (s Spec) declaredByName(a gain.Arm) bool {
	return s.Builds.Named() || a != gain.Perfect && !s.Design.Within()
}
