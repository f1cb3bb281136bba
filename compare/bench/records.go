package bench

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/moebalance/moebalance/compare/bench/control"
	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
)

// OfRecords are launches that led themselves as a campaign, by the files of their records. It
// is in no folder. judged says how it is read and judged.
func OfRecords(paths []string, judged Spec) (*Campaign, error) {
	c := &Campaign{Spec: judged, Sessions: 1}
	c.Spec.Design = Design{Launches: len(paths)}
	c.Spec.Treatment, _ = ParseTreatment("hook")
	c.Spec.Command.Normal = paths
	custom, err := judged.custom()
	if err != nil {
		return nil, err
	}
	r := runner{Campaign: c, custom: custom}
	var records []control.Record
	for i, path := range paths {
		record, err := control.ReadRecord(path)
		if err != nil {
			return nil, err
		}
		if at := slices.IndexFunc(records, record.SameLaunch); at >= 0 {
			return nil, fmt.Errorf("%s and %s are records of the same launch: want each once", paths[at], path)
		}
		records = append(records, record)
		c.Spec.Design.Blocks = max(c.Spec.Design.Blocks, len(record.Blocks))
		a := Attempt{Number: 1, Session: 1, State: Finished, OthersCPU: router.Undefined()}
		if err := r.recordSegments(&a, record, 1); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		c.Launches = append(c.Launches, Launch{Position: i, Kind: Timed, Pair: i, Attempts: []Attempt{a}})
	}
	return c, nil
}

// readRecord reads the record that a command printed which led the launch itself.
func (r *runner) readRecord(l Launch, a *Attempt, folder string) (err error) {
	var record control.Record
	for _, path := range r.outputOf(l, folder, "") {
		if record, err = control.ReadRecord(path); err == nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("%w: call moebalance_hook.alternate(measure) in the command, or give --server and --client", err)
	}
	acks, _, _ := control.Folder(filepath.Join(folder, controlFolder)).Answers(0) // without, nothing is claimed
	return r.recordSegments(a, record, len(acks))
}

// recordSegments makes the segments of a record those of an attempt, of so many ranks.
func (r *runner) recordSegments(a *Attempt, record control.Record, ranks int) error {
	normal := record.Normal()
	a.Segments, a.Orders = nil, nil
	for b, block := range record.Blocks {
		for place, m := range block.Segments {
			arm, router := gain.Perfect, record.Routers[m.Arm]
			if m.Arm == normal {
				arm = gain.Normal
			}
			result, err := metrics.OfSegment(m.Seconds, m.Value, r.custom)
			switch {
			case err != nil:
			case r.Spec.Metric == "" && result.Primary == "":
				return metrics.Choose(m.Value)
			default:
				err = r.usable(&result)
			}
			if rule := metrics.RuleOf(r.Spec.Metric, m.Value); err != nil && rule != "" {
				err = fmt.Errorf("%w; try: %s", err, rule)
			}
			if err != nil {
				return fmt.Errorf("block %d, segment %d: %w", b+1, place+1, err)
			}
			a.Segments = append(a.Segments, Segment{Counts: true, DurationNS: int64(1e9 * m.Seconds), Result: &result,
				Run: control.Run{Number: len(a.Segments), Block: b, Place: place, Arm: string(arm), Router: router,
					Sequence: m.Sequence, Timed: true}})
			if n := len(a.Orders); n == 0 || a.Orders[n-1].Sequence != m.Sequence {
				a.Orders = append(a.Orders, Ordered{Sequence: m.Sequence, Arm: arm, Router: router, Ranks: ranks})
			}
		}
	}
	return nil
}

// rereadWithin reads the reports of a launch's segments again.
func (r *runner) rereadWithin(l Launch, a *Attempt, folder string) error {
	if r.Spec.alternates() {
		counted := a.Orders
		err := r.readRecord(l, a, folder)
		a.Orders = counted
		return err
	}
	for i, s := range a.Segments {
		result, err := r.parse(r.outputOf(l, filepath.Join(folder, s.Folder), s.Point))
		if err != nil {
			return fmt.Errorf("%s: %w", s.Folder, err)
		}
		a.Segments[i].Result = &result
	}
	return nil
}
