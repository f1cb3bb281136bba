//go:build !linux

package launch

// Without /proc the processes that left their group are unknown.

func children() map[int]string { return nil }

// find lists the groups of the job that run, by their negative numbers.
func (f *family) find() (groups []int) {
	for _, leader := range f.leaders {
		groups = append(groups, inGroup(leader)...)
	}
	return groups
}

func inGroup(group int) []int {
	if groupRuns(group) {
		return []int{-group}
	}
	return nil
}

func (m Marker) on(int) bool { return false }

func (p *process) group() Group { return Group{} }
