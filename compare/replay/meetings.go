package replay

import (
	"cmp"
	"math"
	"slices"
)

// meeting is one collective.
type meeting struct {
	name     int32   // of the collective
	layer    int32   // of the experts before it, None without
	ranks    int     // that meet
	transfer float64 // the shortest stay
	last     int64   // arrival
}

// meetings are the collectives of a step.
type meetings struct {
	list  []meeting
	of    [][]int // by rank: the number of each kernel's meeting, None for other work
	add   []int64 // by rank: what brings its clock to the others'
	group []int   // by rank: the lowest rank that it meets, directly or through others
	split bool    // see Run.Split
	stays []Stay  // by rank
}

// Ranks that meet in a collective leave it together: at most this many nanoseconds apart, by
// what clocks and kernels' ends vary, or a part of their stay, as a rank may leave that has sent all of its own, or
// much closer than they come (0.002 to 0.55 of it in real captures). Ranks that do not meet are as far apart behind
// it as before.
const (
	apartAtMost = 20e3
	closer      = 0.7
	partOfStay  = 0.35 // 0.29 at most over NVLink, where two ranks come 20 to 50 µs apart and stay 100 to 300
)

// Ranks of a group leave a collective at most surelyTogether nanoseconds apart, 90 of 100 times, or so
// much closer than they come: 3.3 µs in most real steps, and 0.51 of it in others; groups that run alike
// steps have 0.65 and more. Where loads vary, groups come as far apart as ranks of one; but of two groups some
// ranks leave together and others do not: the furthest two are 170 times as far apart as the closest and more,
// in 520 steps of real groups 9.1 times at most.
const (
	surelyTogether = 10e3
	surelyCloser   = 0.58
	mostFurther    = 20
	clockStep      = 32 // by which profilers tell times
)

const (
	leastMeetings = 4 // collectives of a name that tell which ranks meet best; rarer ones meet as in the name before
	leastLayers   = 8 // collectives of a name that tell whether a rank is missing
)

// meet finds the meetings: the n-th collectives of a name on all ranks that leave these together. It fails where
// ranks ran different collectives.
func (s *Step) meet() (m meetings, alike bool) {
	byName := map[int32][][]int{} // by rank: positions of kernels
	for r, kernels := range s.Ranks {
		m.of, m.group = append(m.of, slices.Repeat([]int{None}, len(kernels))), append(m.group, r)
		for i, k := range kernels {
			if k.Collective == None {
				continue
			}
			if byName[k.Collective] == nil {
				byName[k.Collective] = make([][]int, len(s.Ranks))
			}
			byName[k.Collective][r] = append(byName[k.Collective][r], i)
		}
	}
	var names []int32
	for name, at := range byName {
		if slices.ContainsFunc(at, func(l []int) bool { return len(l) != len(at[0]) }) {
			return m, false
		}
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b int32) int { // the most frequent first, which tells clocks best
		return cmp.Or(cmp.Compare(len(byName[b][0]), len(byName[a][0])), cmp.Compare(a, b))
	})
	m.add, m.stays = make([]int64, len(s.Ranks)), make([]Stay, len(s.Ranks))
	var leader []int
	for i, name := range names {
		c := collectives{s, byName[name]}
		if i == 0 || len(c.at[0]) >= leastMeetings {
			leader = c.leaders()
		}
		if i == 0 {
			m.split = c.split()
		}
		for r, l := range leader {
			if i == 0 {
				m.add[r] = int64(quantile(0.5, c.apart(r, l, end)))
			}
			m.join(r, l)
		}
		for n := range c.at[0] {
			m.note(s, name, leader, c.at, n)
		}
	}
	for r, kernels := range s.Ranks {
		for i, at := range m.of[r] {
			if k := &kernels[i]; at != None {
				wait := min(m.list[at].last-(k.Start+m.add[r]), k.End-k.Start)
				m.stays[r].WaitNS += float64(wait)
				m.stays[r].TransferNS += float64(k.End - k.Start - wait)
			}
		}
	}
	return m, true
}

// join makes one group of the groups of two ranks.
func (m *meetings) join(a, b int) {
	from, to := m.group[a], m.group[b]
	for r, g := range m.group {
		if g == from || g == to {
			m.group[r] = min(from, to)
		}
	}
}

// note lists the meetings of the n-th kernels of a name, one for each leader.
func (m *meetings) note(s *Step, name int32, leader []int, at [][]int, n int) {
	number := map[int]int{} // by leader
	for r, l := range leader {
		if l == r {
			number[l] = len(m.list)
			m.list = append(m.list, meeting{name, None, 0, math.Inf(1), math.MinInt64})
		}
		i := at[r][n]
		k, met := &s.Ranks[r][i], &m.list[number[l]]
		met.ranks++
		met.transfer = min(met.transfer, float64(k.End-k.Start))
		met.last = max(met.last, k.Start+m.add[r])
		m.of[r][i] = number[l]
	}
}

// collectives are the ones of a name: by rank, positions of kernels.
type collectives struct {
	*Step
	at [][]int
}

func start(k *Kernel) int64 { return k.Start }
func end(k *Kernel) int64   { return k.End }

// apart is how much later one rank is than another at each collective.
func (c collectives) apart(rank, other int, when func(*Kernel) int64) []float64 {
	by := make([]float64, len(c.at[rank]))
	for n := range by {
		by[n] = float64(when(&c.Ranks[other][c.at[other][n]]) - when(&c.Ranks[rank][c.at[rank][n]]))
	}
	return by
}

// together reports whether two ranks leave collectives within a limit or a part of their stay, or closer than they come
// by a factor, and how far apart.
func (c collectives) together(rank, other int, limit, factor float64) (apart float64, is bool) {
	stays := make([]float64, len(c.at[rank]))
	for n := range stays {
		a, b := &c.Ranks[rank][c.at[rank][n]], &c.Ranks[other][c.at[other][n]]
		stays[n] = float64(min(a.End-a.Start, b.End-b.Start))
	}
	limit, apart = max(limit, partOfStay*quantile(0.5, stays)), spread(c.apart(rank, other, end))
	return apart, apart <= limit || apart <= factor*spread(c.apart(rank, other, start))
}

// leaders gives each rank the lowest one with which it leaves collectives.
func (c collectives) leaders() []int {
	leader := make([]int, len(c.at))
	for r := range leader {
		for leader[r] = 0; leader[r] < r; leader[r]++ {
			if l := leader[r]; leader[l] == l {
				if _, meet := c.together(r, l, apartAtMost, closer); meet {
					break
				}
			}
		}
	}
	return leader
}

// split reports ranks that leave collectives apart.
func (c collectives) split() bool {
	least, most := math.Inf(1), 0.0
	for r := range c.at[1:] {
		for _, other := range []int{0, r} { // a rank of one's own group is the first or a neighbor
			ends, meet := c.together(r+1, other, surelyTogether, surelyCloser)
			if least, most = min(least, ends), max(most, ends); other == 0 && !meet {
				return true
			}
		}
	}
	return len(c.at[0]) >= leastMeetings && len(c.at) > 2 && most > mostFurther*max(least, clockStep)
}

// spread is the 90th percentile of the distance from the median, by which clocks differ.
func spread(by []float64) float64 {
	center := quantile(0.5, by)
	for i := range by {
		by[i] = math.Abs(by[i] - center)
	}
	return quantile(0.9, by)
}

// Split reports ranks that do not wait for each other: in most steps they leave the most frequent
// collective as far apart as they come.
func (r *Run) Split() bool {
	split := 0
	for _, s := range r.steps {
		if s.meetings.split {
			split++
		}
	}
	return 2*split > len(r.steps)
}

// StayRatio is by how much the stays in the collectives behind experts are longer in some layers of a step, the 90th
// percentile, than in others, the 10th, or in all, the 10th, than in collectives of the same name elsewhere, the 90th:
// tensor-parallel ranks run one behind attention, of as many bytes. Median over steps, 1 for fewer than eight layers
// and fewer than four of each. All ranks that were recorded stay long where the rank that arrives last was not.
func (r *Run) StayRatio() float64 {
	var ratios []float64
	for _, s := range r.steps {
		stays, elsewhere, most := map[int32][]float64{}, map[int32][]float64{}, 1.0 // by name
		for _, m := range s.meetings.list {
			if m.layer != None {
				stays[m.name] = append(stays[m.name], m.transfer)
			} else {
				elsewhere[m.name] = append(elsewhere[m.name], m.transfer)
			}
		}
		for name, own := range stays {
			low := quantile(0.1, own)
			if len(own) >= leastLayers && low > 0 {
				most = max(most, quantile(0.9, own)/low)
			}
			others := elsewhere[name]
			if level := quantile(0.9, others); min(len(own), len(others)) >= leastMeetings && level > 0 {
				most = max(most, low/level)
			}
		}
		ratios = append(ratios, most)
	}
	return quantile(0.5, ratios)
}
