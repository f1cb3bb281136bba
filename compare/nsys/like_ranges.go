package nsys

import (
	"cmp"
	"slices"
)

// rangeKernelSum is nvtx_kern_sum: kernels by the ranges around their launch,
// per thread. A kernel that no range contains appears under an empty one.
func rangeKernelSum(rec *recording) ([][]string, error) {
	type key struct {
		title, style string
		thread       int32
		name         int32
	}
	type group struct {
		key
		ranges    map[int32]bool
		durations []int64
	}
	groups := map[key]*group{}
	add := func(k key, rng int32, duration int64) {
		g := groups[k]
		if g == nil {
			g = &group{key: k, ranges: map[int32]bool{}}
			groups[k] = g
		}
		if rng >= 0 {
			g.ranges[rng] = true
		}
		g.durations = append(g.durations, duration)
	}
	launched, alone := byCall(rec, rec.kernels)
	inside := make([]bool, len(rec.calls))
	c := newContainment(rec)
	err := c.each(func(call, rng int32) {
		for _, k := range launched(call) {
			inside[call] = true
			r := &rec.ranges[rng]
			add(key{c.title(rng), styleNames[r.style], r.thread, rec.kernels[k].name}, rng, rec.kernels[k].end-rec.kernels[k].start)
		}
	})
	if err != nil {
		return nil, err
	}
	for _, k := range rec.kernels {
		if k.call >= 0 && !inside[k.call] {
			add(key{thread: rec.calls[k.call].thread, name: k.name}, -1, k.end-k.start)
		}
	}
	for _, k := range alone {
		add(key{thread: -1, name: rec.kernels[k].name}, -1, rec.kernels[k].end-rec.kernels[k].start)
	}
	sorted := make([]*group, 0, len(groups))
	stats := map[*group]Stats{}
	for _, g := range groups {
		stats[g] = StatsOf(g.durations)
		sorted = append(sorted, g)
	}
	ids := func(thread int32) (int64, int64) {
		if thread < 0 {
			return -1, -1
		}
		return pidOf(rec.threads[thread].id), tidOf(rec.threads[thread].id)
	}
	slices.SortFunc(sorted, func(a, b *group) int {
		ap, at := ids(a.thread)
		bp, bt := ids(b.thread)
		return cmp.Or(cmp.Compare(a.title, b.title), cmp.Compare(ap, bp), cmp.Compare(at, bt),
			cmp.Compare(stats[b].TotalNS, stats[a].TotalNS), cmp.Compare(rec.names[a.name], rec.names[b.name]), cmp.Compare(a.style, b.style))
	})
	rows := [][]string{{"NVTX Range", "Style", "PID", "TID", "NVTX Inst", "Kern Inst", "Total Time (ns)", "Avg (ns)", "Med (ns)", "Min (ns)", "Max (ns)", "StdDev (ns)", "Kernel Name"}}
	for _, g := range sorted {
		s := stats[g]
		row := []string{g.title, g.style, "", "", whole(int64(len(g.ranges))), whole(s.Instances), whole(s.TotalNS)}
		if pid, tid := ids(g.thread); g.thread >= 0 {
			row[2], row[3] = whole(pid), whole(tid)
		}
		rows = append(rows, append(append(row, figures(s)...), rec.names[g.name]))
	}
	return rows, nil
}

// byCall indexes executions by the call that launched them, and lists those
// whose call is not recorded.
func byCall(rec *recording, work []kernel) (launched func(call int32) []int32, alone []int32) {
	ends := make([]int32, len(rec.calls)+1)
	for i, k := range work {
		if k.call >= 0 {
			ends[k.call+1]++
		} else {
			alone = append(alone, int32(i))
		}
	}
	for i := range rec.calls {
		ends[i+1] += ends[i]
	}
	starts := slices.Clone(ends)
	list := make([]int32, len(work)-len(alone))
	for i, k := range work {
		if k.call >= 0 {
			list[starts[k.call]] = int32(i)
			starts[k.call]++
		}
	}
	return func(call int32) []int32 { return list[ends[call]:ends[call+1]] }, alone
}

// projectionSum is nvtx_gpu_proj_sum: every range stretched over the operations
// launched inside it. Operations launched by one call count once.
func projectionSum(rec *recording) ([][]string, error) {
	type projection struct {
		start, end int64
		ops        int64
	}
	work := slices.Concat(rec.kernels, rec.moves)
	launched, _ := byCall(rec, work)
	projections := make([]projection, len(rec.ranges))
	c := newContainment(rec)
	err := c.each(func(call, rng int32) {
		list := launched(call)
		p := &projections[rng]
		for i, k := range list {
			if p.ops == 0 && i == 0 {
				p.start, p.end = work[k].start, work[k].end
			}
			p.start, p.end = min(p.start, work[k].start), max(p.end, work[k].end)
		}
		p.ops += int64(min(len(list), 1))
	})
	if err != nil {
		return nil, err
	}
	type key struct{ title, style string }
	type group struct {
		key
		durations                      []int64
		original, ops, level, children int64
	}
	level, child := c.nest(func(rng int32) bool { return projections[rng].ops > 0 })
	groups := map[key]*group{}
	for i, p := range projections {
		if p.ops == 0 {
			continue
		}
		r := &rec.ranges[i]
		k := key{c.title(int32(i)), styleNames[r.style]}
		g := groups[k]
		if g == nil {
			g = &group{key: k}
			groups[k] = g
		}
		g.durations = append(g.durations, p.end-p.start)
		g.original += r.end - r.start
		g.ops += p.ops
		g.level += int64(level[i])
		g.children += int64(child[i])
	}
	sorted := make([]*group, 0, len(groups))
	stats := map[*group]Stats{}
	for _, g := range groups {
		stats[g] = StatsOf(g.durations)
		sorted = append(sorted, g)
	}
	slices.SortFunc(sorted, func(a, b *group) int {
		return cmp.Or(cmp.Compare(stats[b].TotalNS, stats[a].TotalNS), cmp.Compare(a.title, b.title), cmp.Compare(a.style, b.style))
	})
	rows := [][]string{{"Range", "Style", "Total Proj Time (ns)", "Total Range Time (ns)", "Range Instances", "Proj Avg (ns)", "Proj Med (ns)", "Proj Min (ns)", "Proj Max (ns)", "Proj StdDev (ns)", "Total GPU Ops", "Avg GPU Ops", "Avg Range Lvl", "Avg Num Child"}}
	for _, g := range sorted {
		s := stats[g]
		n := float64(s.Instances)
		row := []string{g.title, g.style, whole(s.TotalNS), whole(g.original), whole(s.Instances)}
		row = append(append(row, figures(s)...), whole(g.ops), tenth(float64(g.ops)/n), tenth(float64(g.level)/n), tenth(float64(g.children)/n))
		rows = append(rows, row)
	}
	return rows, nil
}
