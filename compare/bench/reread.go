package bench

import (
	"fmt"
	"path/filepath"
	"slices"
)

// Reread judges the campaign by other rules than it was run under: another threshold,
// metric, proof line or number of ranks. What the rules read is read again from the kept
// output of the finished launches; nothing is launched, and the campaign file keeps the
// rules of the run.
func (c *Campaign) Reread(s Spec) error {
	if err := s.Check(); err != nil {
		return err
	}
	old := c.Spec
	c.Spec = s
	if s.Metric == old.Metric && slices.Equal(s.Custom, old.Custom) && s.Treatment.Line == old.Treatment.Line {
		return nil
	}
	custom, err := s.custom()
	if err != nil {
		return err
	}
	r := runner{Campaign: c, custom: custom}
	for _, l := range c.Launches {
		if _, ok := l.Done(); !ok {
			continue
		}
		a := &l.Attempts[len(l.Attempts)-1]
		if err := r.readReport(l, a, filepath.Join(c.Folder, a.Folder)); err != nil {
			return fmt.Errorf("launch %d: %w", l.Position, err)
		}
	}
	return nil
}
