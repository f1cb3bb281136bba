package like

import (
	"cmp"
	"slices"

	"github.com/moebalance/moebalance/compare/nsys/capture"
	"github.com/moebalance/moebalance/compare/nsys/kernel"
)

// rangeKernel groups kernels by the range around their launch, its thread and
// their name. Without a range there is no title; without a launch the thread is
// −1.
type rangeKernel struct {
	title  rangeTitle
	style  string
	thread int32
	name   int32
}

// rangeKernelGroup is one group.
type rangeKernelGroup struct {
	rangeKernel
	ranges    map[int32]bool // the ranges of this title that it occurs in
	first     rangeCall      // by which the latest kernels came in
	kernels   int64          // each once, in however many of the ranges it is
	durations []int64
	stats     kernel.Stats
}

// rangeCall is a call and a range around it.
type rangeCall struct{ call, rng int32 }

// rangeKernelSum is nvtx_kern_sum: kernels by the ranges around their launch,
// per thread. A kernel that no range contains appears under an empty one.
func rangeKernelSum(rec *capture.Recording) ([][]string, error) {
	groups, err := groupRangeKernels(rec)
	if err != nil {
		return nil, err
	}
	ids := func(thread int32) (pid, tid int64) {
		if thread < 0 {
			return -1, -1
		}
		return capture.PID(rec.Threads[thread].ID), capture.TID(rec.Threads[thread].ID)
	}
	slices.SortFunc(groups, func(a, b *rangeKernelGroup) int {
		ap, at := ids(a.thread)
		bp, bt := ids(b.thread)
		return cmp.Or(a.title.compare(b.title), cmp.Compare(ap, bp), cmp.Compare(at, bt),
			cmp.Compare(b.stats.TotalNS, a.stats.TotalNS), cmp.Compare(rec.KernelNames[a.name], rec.KernelNames[b.name]), cmp.Compare(a.style, b.style))
	})
	rows := [][]string{{"NVTX Range", "Style", "PID", "TID", "NVTX Inst", "Kern Inst", "Total Time (ns)", "Avg (ns)", "Med (ns)", "Min (ns)", "Max (ns)", "StdDev (ns)", "Kernel Name"}}
	for _, g := range groups {
		row := []string{g.title.text, g.style, "", "", whole(int64(len(g.ranges))), whole(g.kernels), whole(g.stats.TotalNS)}
		if pid, tid := ids(g.thread); g.thread >= 0 {
			row[2], row[3] = whole(pid), whole(tid)
		}
		rows = append(rows, append(append(row, figures(g.stats)...), rec.KernelNames[g.name]))
	}
	return rows, nil
}

func groupRangeKernels(rec *capture.Recording) ([]*rangeKernelGroup, error) {
	index := map[rangeKernel]*rangeKernelGroup{}
	var groups []*rangeKernelGroup
	add := func(key rangeKernel, k int32, by rangeCall) *rangeKernelGroup {
		g := index[key]
		if g == nil {
			g = &rangeKernelGroup{rangeKernel: key, ranges: map[int32]bool{}, first: rangeCall{-1, -1}}
			index[key] = g
			groups = append(groups, g)
		}
		g.durations = append(g.durations, rec.Kernels[k].End-rec.Kernels[k].Start)
		if by.call < 0 || g.first.call != by.call {
			g.first = by
		}
		if g.first == by {
			g.kernels++
		}
		return g
	}
	launched := byCall(rec, rec.Kernels)
	inside := make([]bool, len(rec.Launches))
	c := newRangeNesting(rec)
	err := c.each(func(call, rng int32) {
		inside[call] = true
		r := &rec.Ranges[rng]
		for _, k := range launched(call) {
			add(rangeKernel{c.title(rng), styleNames[r.Style], r.Thread, rec.Kernels[k].Name}, k, rangeCall{call, rng}).ranges[rng] = true
		}
	})
	if err != nil {
		return nil, err
	}
	for i, k := range rec.Kernels {
		switch {
		case k.Launch < 0:
			add(rangeKernel{thread: -1, name: k.Name}, int32(i), rangeCall{-1, -1})
		case !inside[k.Launch]:
			add(rangeKernel{thread: rec.Launches[k.Launch].Thread, name: k.Name}, int32(i), rangeCall{-1, -1})
		}
	}
	for _, g := range groups {
		g.stats = kernel.StatsOf(g.durations)
	}
	return groups, nil
}

// byCall indexes executions by the call that launched them.
func byCall(rec *capture.Recording, work []capture.Kernel) (launched func(call int32) []int32) {
	ends := make([]int32, len(rec.Launches)+1)
	for _, k := range work {
		if k.Launch >= 0 {
			ends[k.Launch+1]++
		}
	}
	for i := range rec.Launches {
		ends[i+1] += ends[i]
	}
	next := slices.Clone(ends)
	list := make([]int32, ends[len(rec.Launches)])
	for i, k := range work {
		if k.Launch >= 0 {
			list[next[k.Launch]] = int32(i)
			next[k.Launch]++
		}
	}
	return func(call int32) []int32 { return list[ends[call]:ends[call+1]] }
}

// projection is a range stretched over the operations launched inside it.
type projection struct {
	start, end int64
	ops        int64 // operations launched by one call count once
}

// projectionGroup groups the ranges of one name that anything was launched in.
type projectionGroup struct {
	title                          rangeTitle
	style                          string
	durations                      []int64
	original, ops, level, children int64 // sums
	stats                          kernel.Stats
}

// projectionSum is nvtx_gpu_proj_sum: ranges by name, stretched over what was
// launched inside them.
func projectionSum(rec *capture.Recording) ([][]string, error) {
	groups, err := groupProjections(rec)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(groups, func(a, b *projectionGroup) int {
		return cmp.Or(cmp.Compare(b.stats.TotalNS, a.stats.TotalNS), a.title.compare(b.title), cmp.Compare(a.style, b.style))
	})
	rows := [][]string{{"Range", "Style", "Total Proj Time (ns)", "Total Range Time (ns)", "Range Instances", "Proj Avg (ns)", "Proj Med (ns)", "Proj Min (ns)", "Proj Max (ns)", "Proj StdDev (ns)", "Total GPU Ops", "Avg GPU Ops", "Avg Range Lvl", "Avg Num Child"}}
	for _, g := range groups {
		n := float64(g.stats.Instances)
		row := []string{g.title.text, g.style, whole(g.stats.TotalNS), whole(g.original), whole(g.stats.Instances)}
		row = append(append(row, figures(g.stats)...), whole(g.ops), tenth(float64(g.ops)/n), tenth(float64(g.level)/n), tenth(float64(g.children)/n))
		rows = append(rows, row)
	}
	return rows, nil
}

func groupProjections(rec *capture.Recording) ([]*projectionGroup, error) {
	c := newRangeNesting(rec)
	projections, err := c.project(slices.Concat(rec.Kernels, rec.MemoryOps))
	if err != nil {
		return nil, err
	}
	level, child, err := c.nest(func(rng int32) bool { return projections[rng].ops > 0 })
	if err != nil {
		return nil, err
	}
	type key struct {
		title rangeTitle
		style string
	}
	index := map[key]*projectionGroup{}
	var groups []*projectionGroup
	for i, p := range projections {
		r := &rec.Ranges[i]
		if p.ops == 0 || r.Unnamed {
			continue
		}
		k := key{c.title(int32(i)), styleNames[r.Style]}
		g := index[k]
		if g == nil {
			g = &projectionGroup{title: k.title, style: k.style}
			index[k] = g
			groups = append(groups, g)
		}
		g.durations = append(g.durations, p.end-p.start)
		g.original += r.End - r.Start
		g.ops += p.ops
		g.level += int64(level[i])
		g.children += int64(child[i])
	}
	for _, g := range groups {
		g.stats = kernel.StatsOf(g.durations)
	}
	return groups, nil
}

// project stretches every range over the work launched inside it.
func (c *rangeNesting) project(work []capture.Kernel) ([]projection, error) {
	launched := byCall(c.rec, work)
	projections := make([]projection, len(c.rec.Ranges))
	err := c.each(func(call, rng int32) {
		p, list := &projections[rng], launched(call)
		for i, k := range list {
			if p.ops == 0 && i == 0 {
				p.start, p.end = work[k].Start, work[k].End
			}
			p.start, p.end = min(p.start, work[k].Start), max(p.end, work[k].End)
		}
		p.ops += int64(min(len(list), 1))
	})
	return projections, err
}
