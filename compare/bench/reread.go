package bench

import "slices"

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
		if err := r.reread(l, &l.Attempts[len(l.Attempts)-1]); err != nil {
			return err
		}
	}
	return nil
}
