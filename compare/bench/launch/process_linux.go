package launch

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// adopt makes this process the parent of every process whose own has ended, so that one
// that left its group and its environment is still known as ours.
var adopt = sync.OnceFunc(func() {
	const setChildSubreaper = 36                                             // PR_SET_CHILD_SUBREAPER
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setChildSubreaper, 1, 0) // without it the marker has to do
})

// children are the start times of the children of this process.
func children() map[int]string {
	adopt()
	found := map[int]string{}
	for pid, fields := range processes() {
		if isChild(fields) {
			found[pid] = fields[startField]
		}
	}
	return found
}

func isChild(status []string) bool { return status[parentField] == strconv.Itoa(os.Getpid()) }

// find lists the processes that run.
func (f *family) find() (pids []int) {
	all := processes()
	if f.seen == nil {
		f.seen = map[int]string{}
	}
	for _, g := range f.groups {
		for _, pid := range g.members(all) {
			f.seen[pid] = all[pid][startField]
		}
	}
	for pid, fields := range all {
		switch {
		case pid == os.Getpid():
		case !runs(fields):
			f.bury(pid, fields)
		case f.seen[pid] == fields[startField] || f.started(all, pid) || f.marker.on(pid):
			f.seen[pid] = fields[startField]
			pids = append(pids, pid)
		}
	}
	return pids
}

// started reports whether a process descends from one that the job has started, or that
// became a child of this process when its own parent ended.
func (f *family) started(all map[int][]string, pid int) bool {
	for range len(all) {
		fields := all[pid]
		switch {
		case fields == nil || f.before == nil:
			return false
		case isChild(fields):
			return f.adopted(pid, fields)
		}
		pid, _ = strconv.Atoi(fields[parentField])
	}
	return false
}

// adopted reports whether a child of this process is the job's. What this process starts
// for itself, such as nvidia-smi, stays in its process group.
func (f *family) adopted(pid int, status []string) bool {
	return f.before != nil && isChild(status) && f.before[pid] != status[startField] &&
		status[groupField] != strconv.Itoa(syscall.Getpgrp())
}

// bury collects a dead process that nobody else waits for.
func (f *family) bury(pid int, status []string) {
	if f.adopted(pid, status) && !slices.Contains(f.leaders, pid) {
		_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil) // one that lives on is found again
	}
}

// inGroup lists the running processes of a group. Dead ones that nobody has collected, as in
// a container without an init, do not count.
func inGroup(group int) []int {
	if !groupRuns(group) {
		return nil
	}
	return Group{ID: group}.running(processes())
}

// running are the processes with the number of the group that run.
func (g Group) running(all map[int][]string) (pids []int) {
	for pid, fields := range all {
		if runs(fields) && fields[groupField] == strconv.Itoa(g.ID) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// group is the process group of a started process.
func (p *process) group() Group {
	g := Group{ID: p.cmd.Process.Pid, Boot: bootID()}
	if fields := status(g.ID); len(fields) > startField {
		g.Session, g.Started = fields[sessionField], ticks(fields)
	}
	return g
}

func bootID() string {
	text, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text))
}

func ticks(status []string) int64 {
	n, _ := strconv.ParseInt(status[startField], 10, 64)
	return n
}

// members are the running processes of a group; none where the number now is another
// group's: of another start of the system, or with a process of another session or one
// that started before the group did, or led by a later process.
func (g Group) members(all map[int][]string) []int {
	pids := g.running(all)
	if g.Boot != bootID() || slices.ContainsFunc(pids, func(pid int) bool {
		at := ticks(all[pid])
		return all[pid][sessionField] != g.Session || at < g.Started || pid == g.ID && at != g.Started
	}) {
		return nil
	}
	return pids
}

// Indexes into the fields of status.
const (
	stateField   = 0
	parentField  = 1
	groupField   = 2
	sessionField = 3
	startField   = 19
)

// status are the fields of a process's stat file from its state on; nil without
// such a process.
func status(pid int) []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	// pid (name) state …; the name may hold anything, so cut after its ")".
	return strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
}

// runs reports whether a process of such a status is neither gone nor dead.
func runs(status []string) bool {
	return len(status) > startField && status[stateField] != "Z" && status[stateField] != "X"
}

// processes are the status of every process.
func processes() map[int][]string {
	all := map[int][]string{}
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, folder := range folders {
		pid, _ := strconv.Atoi(filepath.Base(folder))
		if fields := status(pid); len(fields) > startField {
			all[pid] = fields
		}
	}
	return all
}

// on reports whether the environment of a process carries the marker. One that is starting
// another program has none for a moment.
func (m Marker) on(pid int) bool {
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return err == nil && m != "" && bytes.Contains(append([]byte{0}, env...), append([]byte{0}, m...))
}
