package bench

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/moebalance/moebalance/compare/bench/control"
	"github.com/moebalance/moebalance/compare/bench/points"
	"github.com/moebalance/moebalance/compare/gain"
)

// The environment of an engine that changes its router while it runs.
const (
	controlVariable = "MOEBALANCE_CONTROL"
	routerVariable  = "MOEBALANCE_ROUTER"
	controlFolder   = "control" // below the attempt's
)

// routers are the arms by what routes in them.
func (s Spec) routers() (arms []control.Arm) {
	for _, a := range s.arms() {
		router := map[gain.Arm]string{gain.Normal: control.Off, gain.Perfect: control.Perfect}[a]
		arms = append(arms, control.Arm{Name: string(a), Router: cmp.Or(s.arm(a).Env[routerVariable], router)})
	}
	return arms
}

// Routers reports whether an arm is a router, which needs launches that hold all arms.
func (s Spec) Routers() bool {
	return slices.ContainsFunc(s.Arms, func(a ArmSpec) bool { return a.Env[routerVariable] != "" })
}

// CheckWithin reports what launches that hold all arms cannot do.
func (s Spec) CheckWithin() error {
	switch {
	case !s.Design.Within():
		return nil
	case !s.Treatment.Switches || s.Builds.Named():
		return fmt.Errorf("launches that hold both arms need --treatment hook; other switches are read when an engine " +
			"starts: use --pairs")
	case len(s.Command.Server) == 0:
		return fmt.Errorf("launches that hold both arms need a --server and its --client: give them, or use --pairs")
	case s.perLaunch():
		return fmt.Errorf("{%s} in the command of the engine needs a launch for each value: use --pairs", s.Points.Name)
	}
	for _, a := range s.Arms {
		if len(a.Flags) > 0 || len(a.Env) != 1 || a.Env[routerVariable] == "" {
			return fmt.Errorf("--arm %s: within a launch only the router changes: want --arm %[1]s=ROUTER, such as "+
				"target:1.2; for other differences use --pairs", a.Name)
		}
	}
	return nil
}

// planOf is what a launch measures.
func (s Spec) planOf(l Launch) (p control.Plan) {
	p.Blocks = control.Blocks(s.routers(), blocksPerLaunch, l.Pair, s.Design.Seed)
	p.Separate = s.Points != nil && len(s.more()) > 0 // whose loads make a curve at each point
	for b := range p.Blocks {
		values := []string{""}
		if s.Points != nil {
			values = points.Drawn(s.Design.Seed, l.Pair*blocksPerLaunch+b, s.Points.Values)
		}
		p.Points = append(p.Points, values)
	}
	return p
}

// clientTime is how long a run of a client may take on average in a launch that holds all arms.
const clientTime = 30 * time.Minute

// DefaultTimeout is the time limit of a launch for which none is given: by its timed runs of the client where it
// holds all arms, so that one that hangs does not hold up the campaign; else none.
//
//	two arms in two blocks, no points → 8 timed runs → 4 hours
func (s Spec) DefaultTimeout() time.Duration {
	if !s.Design.Within() {
		return 0
	}
	p := s.planOf(Launch{})
	return clientTime * time.Duration(len(p.Blocks)*len(p.Blocks[0])*len(p.Points[0]))
}

// followed are the variables of an engine that follows a folder; none where a launch is of one arm.
func (s Spec) followed(folder string) map[string]string {
	if !s.Design.Within() {
		return nil
	}
	return map[string]string{controlVariable: filepath.Join(folder, controlFolder), routerVariable: ""}
}
