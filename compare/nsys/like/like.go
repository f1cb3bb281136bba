// Package like prints what nsys stats prints, byte for byte, from a recording: the
// check that anybody can make of how exports are read.
package like

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/compare/nsys/capture"
	"github.com/moebalance/moebalance/compare/nsys/kernel"
	"github.com/moebalance/moebalance/router/input"
)

// Reports are the reports of 'nsys stats' that LikeNsys prints.
var Reports = []string{"cuda_gpu_kern_sum", "nvtx_kern_sum", "nvtx_gpu_proj_sum"}

// Nsys writes what 'nsys stats --report NAME --format csv' of 2023.4 prints
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
// A report for which the export has no rows is an error.
func Nsys(ctx context.Context, w io.Writer, path, report string, o capture.Options) error {
	if !slices.Contains(Reports, report) {
		return fmt.Errorf("unknown report %q: want one of %s", report, strings.Join(Reports, ", "))
	}
	o.Statistics = true
	rec, err := capture.Read(ctx, path, o)
	switch {
	case err != nil:
		return err
	case len(rec.Kernels) == 0 && (len(rec.MemoryOps) == 0 || report == "cuda_gpu_kern_sum"):
		return rec.NoKernels()
	case len(rec.Ranges) == 0 && report != "cuda_gpu_kern_sum":
		return &input.Error{File: path, Expected: "ranges, for " + report, Found: "none", Try: "profile with 'nsys profile --trace cuda,nvtx'"}
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
		err = &input.Error{File: path, Expected: "rows for " + report, Found: "no launch inside a range"}
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
func figures(s kernel.Stats) []string {
	return []string{tenth(float64(s.MeanNS)), tenth(float64(s.MedianNS)), whole(s.MinNS), whole(s.MaxNS), tenth(float64(s.StdDevNS))}
}

// kernelSum is cuda_gpu_kern_sum: kernels by name over all processes.
func kernelSum(rec *capture.Recording) [][]string {
	byName := map[int32][]int64{}
	var total int64
	for _, k := range rec.Kernels {
		byName[k.Name] = append(byName[k.Name], k.End-k.Start)
		total += k.End - k.Start
	}
	type group struct {
		name string
		kernel.Stats
	}
	var groups []group
	for name, durations := range byName {
		groups = append(groups, group{rec.KernelNames[name], kernel.StatsOf(durations)})
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

// rangeNesting finds the ranges around every call.
type rangeNesting struct {
	rec   *capture.Recording
	order []int32 // ranges by thread, start and −end
	calls []int32 // calls by thread and start
}

// pairsLimit bounds the pairs of range and call, which a capture with absurdly
// deep nesting multiplies.
const pairsLimit = 1 << 28

var errNesting = fmt.Errorf("ranges nest so deeply that more than %d pairs of range and call would have to be visited: %w", pairsLimit, capture.ErrDamaged)

func newRangeNesting(rec *capture.Recording) *rangeNesting {
	c := &rangeNesting{rec: rec, calls: make([]int32, len(rec.Launches))}
	for i, r := range rec.Ranges {
		if r.Style != capture.CrossThread {
			c.order = append(c.order, int32(i))
		}
	}
	slices.SortStableFunc(c.order, func(x, y int32) int {
		a, b := &rec.Ranges[x], &rec.Ranges[y]
		return cmp.Or(cmp.Compare(a.Thread, b.Thread), cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End))
	})
	for i := range c.calls {
		c.calls[i] = int32(i)
	}
	slices.SortStableFunc(c.calls, func(x, y int32) int {
		a, b := &rec.Launches[x], &rec.Launches[y]
		return cmp.Or(cmp.Compare(a.Thread, b.Thread), cmp.Compare(a.Start, b.Start))
	})
	return c
}

// nest finds, for every range that counts, its parent: the shortest range around
// it, the later one of two. It counts the parents up to the outermost range
// (level), and the ranges whose parent it is (child).
func (c *rangeNesting) nest(counts func(rng int32) bool) (level, child []int32, err error) {
	level, child = make([]int32, len(c.rec.Ranges)), make([]int32, len(c.rec.Ranges))
	var open []openRange
	looks := 0
	for _, i := range c.order {
		if !counts(i) {
			continue
		}
		r := &c.rec.Ranges[i]
		for n := len(open); n > 0; n-- {
			if top := open[n-1]; top.Thread == r.Thread && top.End >= r.Start {
				break
			}
			open = open[:n-1]
		}
		parent := int32(-1)
		shortest := int64(math.MaxInt64)
		for n := len(open); n > 0; n-- {
			o := open[n-1]
			if o.End >= r.End && o.End-o.Start < shortest {
				parent, shortest = o.number, o.End-o.Start
			}
			if looks++; looks > pairsLimit {
				return nil, nil, errNesting
			}
			if parent >= 0 && o.firstEnd >= c.rec.Ranges[parent].End {
				break // those below began earlier and end no earlier
			}
		}
		if parent >= 0 {
			level[i] = level[parent] + 1
			child[parent]++
		}
		firstEnd := r.End
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
	capture.Range
	number   int32
	firstEnd int64
}

// each visits every pair of a call and a range that contains it.
func (c *rangeNesting) each(visit func(call, rng int32)) error {
	var open []int32
	next, pairs := 0, 0
	for _, i := range c.calls {
		call := &c.rec.Launches[i]
		for ; next < len(c.order); next++ {
			r := &c.rec.Ranges[c.order[next]]
			if r.Thread > call.Thread || r.Thread == call.Thread && r.Start > call.Start {
				break
			}
			if r.Thread == call.Thread {
				open = c.prune(open, r.Thread, r.Start)
				open = append(open, c.order[next])
			}
		}
		open = c.prune(open, call.Thread, call.Start)
		for _, rng := range open {
			if r := &c.rec.Ranges[rng]; r.Thread == call.Thread && r.End >= call.End {
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
func (c *rangeNesting) prune(open []int32, thread int32, at int64) []int32 {
	for n := len(open); n > 0; n-- {
		if top := &c.rec.Ranges[open[n-1]]; top.Thread == thread && top.End >= at {
			break
		}
		open = open[:n-1]
	}
	return open
}

// rangeTitle is the name of a group of ranges. A group without one prints as that of
// the empty name does, and comes before it.
type rangeTitle struct {
	text  string
	given bool
}

func (t rangeTitle) compare(o rangeTitle) int {
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
func (c *rangeNesting) title(rng int32) rangeTitle {
	r := &c.rec.Ranges[rng]
	if r.Unnamed {
		return rangeTitle{}
	}
	text := c.rec.RangeNames[r.Name]
	if domain := c.rec.Domains[r.Domain]; domain != "" {
		text = domain + ":" + text
	}
	return rangeTitle{text, true}
}

var styleNames = map[capture.Style]string{capture.PushPop: "PushPop", capture.StartEnd: "StartEnd"}
