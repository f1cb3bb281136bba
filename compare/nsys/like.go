package nsys

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// LikeReports are the reports of 'nsys stats' that LikeNsys prints.
var LikeReports = []string{"cuda_gpu_kern_sum", "nvtx_kern_sum", "nvtx_gpu_proj_sum"}

// LikeNsys writes what 'nsys stats --report NAME --format csv' of 2023.4 prints
// for the export, to the byte: the same columns, rows, order and rounding. Two
// things differ: names with quotes or line breaks, which the profiler prints as
// they are so that no reader finds their ends, are escaped as CSV asks (RFC 4180);
// and the levels of two ranges with the same times, which it leaves empty, are
// given. The same reports of 2025.3 have the same columns, rows and values, but a
// colon before the names of ranges in no domain and the order that follows from it,
// the other neighbour where a mean lies halfway between two last digits, a projected
// row of ranges without a name, and no empty line at the end.
//
// It is how users convince themselves that both read the same capture; its numbers
// are defined by the profiler and not by this package:
//
//   - a range contains an operation when its thread made the whole launching
//     call inside it, so an operation belongs to all ranges around it;
//   - a projected range lasts from its first operation's start to its last one's
//     end, idle time included; one without a name is not listed.
//
// A report for which the export has no rows is an error: of Options only the
// converter and the progress count.
func LikeNsys(ctx context.Context, w io.Writer, path, report string, o Options) error {
	if !slices.Contains(LikeReports, report) {
		return fmt.Errorf("unknown report %q: want one of %s", report, strings.Join(LikeReports, ", "))
	}
	db, p, err := openExport(ctx, path, o)
	if err != nil {
		return err
	}
	defer db.meter.finish()
	rec, err := read(ctx, db, forStatistics)
	switch {
	case err != nil:
		return err
	case len(rec.kernels) == 0 && (len(rec.moves) == 0 || report == "cuda_gpu_kern_sum"):
		return db.noKernels(p)
	case len(rec.ranges) == 0 && report != "cuda_gpu_kern_sum":
		return fmt.Errorf("%q: %s is of ranges, and none were recorded: profile with 'nsys profile --trace cuda,nvtx'", path, report)
	}
	var rows [][]string
	switch report {
	case "cuda_gpu_kern_sum":
		rows = kernelSum(rec)
	case "nvtx_kern_sum":
		rows, err = rangeKernelSum(rec)
	default:
		rows, err = projectionSum(rec)
	}
	if err == nil && len(rows) == 1 {
		err = fmt.Errorf("%q: %s has no rows: nothing was launched inside a range", path, report)
	}
	if err != nil {
		return err
	}
	return writeReport(w, rows)
}

// writeReport prints rows with a field quoted only where it must be, and the
// blank line that ends a report.
func writeReport(w io.Writer, rows [][]string) error {
	var b strings.Builder
	for _, row := range rows {
		for i, field := range row {
			if i > 0 {
				b.WriteByte(',')
			}
			if strings.ContainsAny(field, ",\"\r\n") {
				field = `"` + strings.ReplaceAll(field, `"`, `""`) + `"`
			}
			b.WriteString(field)
		}
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	_, err := io.WriteString(w, b.String())
	return err
}

// tenth rounds to one decimal, halves away from zero as SQLite does; undefined
// is 0.0 there.
func tenth(v float64) string {
	if math.IsNaN(v) {
		v = 0
	}
	return strconv.FormatFloat(math.Round(v*10)/10, 'f', 1, 64)
}

func whole(v int64) string { return strconv.FormatInt(v, 10) }

// figures are the columns from average to standard deviation.
func figures(s Stats) []string {
	return []string{tenth(float64(s.MeanNS)), tenth(float64(s.MedianNS)), whole(s.MinNS), whole(s.MaxNS), tenth(float64(s.StdDevNS))}
}

// kernelSum is cuda_gpu_kern_sum: kernels by name over all processes.
func kernelSum(rec *recording) [][]string {
	byName := map[int32][]int64{}
	var total int64
	for _, k := range rec.kernels {
		byName[k.name] = append(byName[k.name], k.end-k.start)
		total += k.end - k.start
	}
	type group struct {
		name string
		Stats
	}
	var groups []group
	for name, durations := range byName {
		groups = append(groups, group{rec.names[name], StatsOf(durations)})
	}
	slices.SortFunc(groups, func(a, b group) int {
		return cmp.Or(cmp.Compare(b.TotalNS, a.TotalNS), cmp.Compare(a.Instances, b.Instances), cmp.Compare(a.name, b.name))
	})
	rows := [][]string{{"Time (%)", "Total Time (ns)", "Instances", "Avg (ns)", "Med (ns)", "Min (ns)", "Max (ns)", "StdDev (ns)", "Name"}}
	for _, g := range groups {
		row := []string{tenth(100 * float64(g.TotalNS) / float64(total)), whole(g.TotalNS), whole(g.Instances)}
		rows = append(rows, append(append(row, figures(g.Stats)...), g.name))
	}
	return rows
}

// containment finds the ranges around every call.
type containment struct {
	rec   *recording
	order []int32 // ranges by thread, start and −end
	calls []int32 // calls by thread and start
}

// pairsLimit bounds the pairs of range and call, which a capture with absurdly
// deep nesting multiplies.
const pairsLimit = 1 << 28

var errNesting = fmt.Errorf("ranges nest so deeply that more than %d pairs of range and call would have to be visited: %w", pairsLimit, ErrDamaged)

func newContainment(rec *recording) *containment {
	c := &containment{rec: rec, calls: make([]int32, len(rec.calls))}
	for i, r := range rec.ranges {
		if r.style != crossThread {
			c.order = append(c.order, int32(i))
		}
	}
	slices.SortStableFunc(c.order, func(x, y int32) int {
		a, b := &rec.ranges[x], &rec.ranges[y]
		return cmp.Or(cmp.Compare(a.thread, b.thread), cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
	})
	for i := range c.calls {
		c.calls[i] = int32(i)
	}
	slices.SortStableFunc(c.calls, func(x, y int32) int {
		a, b := &rec.calls[x], &rec.calls[y]
		return cmp.Or(cmp.Compare(a.thread, b.thread), cmp.Compare(a.start, b.start))
	})
	return c
}

// nest finds, for every range that counts, its parent: the shortest range around
// it, the later one of two. It counts the parents up to the outermost range
// (level), and the ranges whose parent it is (child).
func (c *containment) nest(counts func(rng int32) bool) (level, child []int32, err error) {
	level, child = make([]int32, len(c.rec.ranges)), make([]int32, len(c.rec.ranges))
	var open []openRange
	looks := 0
	for _, i := range c.order {
		if !counts(i) {
			continue
		}
		r := &c.rec.ranges[i]
		for n := len(open); n > 0; n-- {
			if top := open[n-1]; top.thread == r.thread && top.end >= r.start {
				break
			}
			open = open[:n-1]
		}
		parent := int32(-1)
		shortest := int64(math.MaxInt64)
		for n := len(open); n > 0; n-- {
			o := open[n-1]
			if o.end >= r.end && o.end-o.start < shortest {
				parent, shortest = o.number, o.end-o.start
			}
			if looks++; looks > pairsLimit {
				return nil, nil, errNesting
			}
			if parent >= 0 && o.firstEnd >= c.rec.ranges[parent].end {
				break // those below began earlier and end no earlier
			}
		}
		if parent >= 0 {
			level[i] = level[parent] + 1
			child[parent]++
		}
		firstEnd := r.end
		if n := len(open); n > 0 {
			firstEnd = min(firstEnd, open[n-1].firstEnd)
		}
		open = append(open, openRange{*r, i, firstEnd})
	}
	return level, child, nil
}

// openRange is a range that may still be open, with the first end of all those
// that began before it and its own.
type openRange struct {
	span
	number   int32
	firstEnd int64
}

// each visits every pair of a call and a range that contains it.
func (c *containment) each(visit func(call, rng int32)) error {
	var open []int32
	next, pairs := 0, 0
	for _, i := range c.calls {
		call := &c.rec.calls[i]
		for ; next < len(c.order); next++ {
			r := &c.rec.ranges[c.order[next]]
			if r.thread > call.thread || r.thread == call.thread && r.start > call.start {
				break
			}
			if r.thread == call.thread {
				open = c.prune(open, r.thread, r.start)
				open = append(open, c.order[next])
			}
		}
		open = c.prune(open, call.thread, call.start)
		for _, rng := range open {
			if r := &c.rec.ranges[rng]; r.thread == call.thread && r.end >= call.end {
				visit(i, rng)
			}
		}
		if pairs += len(open); pairs > pairsLimit {
			return errNesting
		}
	}
	return nil
}

// prune takes ended ranges off the top.
func (c *containment) prune(open []int32, thread int32, at int64) []int32 {
	for n := len(open); n > 0; n-- {
		if top := &c.rec.ranges[open[n-1]]; top.thread == thread && top.end >= at {
			break
		}
		open = open[:n-1]
	}
	return open
}

// title is the name of a group of ranges. A group without one prints as that of
// the empty name does, and comes before it.
type title struct {
	text  string
	given bool
}

func (t title) compare(o title) int {
	switch {
	case t.given == o.given:
		return cmp.Compare(t.text, o.text)
	case t.given:
		return 1
	}
	return -1
}

// title is a range's name as the reports print it: with its domain's, if that
// has one.
func (c *containment) title(rng int32) title {
	r := &c.rec.ranges[rng]
	if r.nameless {
		return title{}
	}
	text := c.rec.names[r.name]
	if domain := c.rec.domains[r.domain]; domain != "" {
		text = domain + ":" + text
	}
	return title{text, true}
}

var styleNames = map[style]string{pushPop: "PushPop", startEnd: "StartEnd"}
