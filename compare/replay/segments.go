package replay

import (
	"cmp"
	"math"
	"slices"
)

// latency is what lies before a kernel whatever it does, in nanoseconds.
type latency struct {
	launch float64 // from the begin of its launch, to an idle GPU
	gap    float64 // from the end of the kernel before it, where it was launched in time
}

// latencies has one for kernels launched one by one, and one for kernels that a graph replays.
type latencies [2]latency

func kindOf(k *Kernel) int {
	if k.Replayed {
		return 1
	}
	return 0
}

// measure takes medians over all kernels: of the launch where the GPU was idle when it began,
// of the gap where it was busy.
func measure(steps []Step) (l latencies) {
	var launches, gaps [2][]float64
	for _, s := range steps {
		for r, kernels := range s.Ranks {
			free := s.Free[r]
			for i := range kernels {
				k := &kernels[i]
				switch of := kindOf(k); {
				case k.Launch == None || k.Start < free:
				case k.Launch >= free:
					launches[of] = append(launches[of], float64(k.Start-k.Launch))
				default:
					gaps[of] = append(gaps[of], float64(k.Start-free))
				}
				free = max(free, k.End)
			}
		}
	}
	for of := range l {
		l[of] = latency{middle(launches[of]), middle(gaps[of])}
	}
	return l
}

// middle is the median, 0 of nothing. It sorts the values.
func middle(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[(len(values)-1)/2]
}

// leastScale is the least factor of work for which the paths kept are the longest ones.
const leastScale = 0.5

// cutter cuts a rank's kernels into segments.
type cutter struct {
	latencies
	now    func(ns int64) float64 // in the step's clock
	free   int64
	seg    segment
	begun  []path  // with the work before them in place of the rest
	most   float64 // the latest path so far: its start less the work before it
	list   []segment
	unseen float64
}

// cut gives a rank's segments. meetings has the number of each kernel's, None for other work.
func (c *cutter) cut(kernels []Kernel, meetings []int) {
	c.seg, c.most = segment{meeting: None, layer: None}, c.now(c.free)
	for i := range kernels {
		k := &kernels[i]
		if k.Waited != None && c.free <= k.Resumed { // else it was for other work
			c.seg.call, c.seg.resumed = c.now(k.Waited), c.now(k.Resumed)
			c.seg.rest = c.seg.resumed - max(c.seg.call, c.now(c.free))
			c.close(wait)
		}
		c.start(k)
		if meetings[i] != None {
			c.free = max(c.free, k.End)
			c.close(meetings[i])
			continue
		}
		if own := k.End - max(k.Start, c.free); own > 0 { // what other streams do not cover
			c.seg.all.of[k.Class] += float64(own)
			c.free = k.End
		}
		if k.Class == Experts && k.Layer != None {
			c.seg.layer = k.Layer
		}
	}
	c.close(None)
}

// start takes what lies before a kernel: the gap to the one before, and its launch. A kernel
// that was launched in time and starts late waits for something that is not recorded, such as
// a copy on its stream, which no change makes shorter.
func (c *cutter) start(k *Kernel) {
	before := c.latencies[kindOf(k)]
	allowed := c.now(k.Launch) + before.launch
	if gap := float64(k.Start - c.free); gap >= 0 {
		c.seg.all.gap += before.gap
		if k.Launch != None && allowed < c.now(c.free) && gap > before.gap {
			c.seg.all.gap += gap - before.gap
			c.unseen += gap - before.gap
		}
	}
	done := c.seg.all.gap
	for _, ns := range c.seg.all.of {
		done += ns * leastScale
	}
	if k.Launch != None && allowed-done > c.most { // else an earlier path is longer
		c.most = allowed - done
		c.begun = append(c.begun, path{allowed, c.seg.all})
	}
}

// close ends the segment at a meeting.
func (c *cutter) close(meeting int) {
	for _, p := range c.begun {
		rest := c.seg.all
		rest.gap -= p.rest.gap
		for class := range rest.of {
			rest.of[class] -= p.rest.of[class]
		}
		c.seg.paths = append(c.seg.paths, path{p.at, rest})
	}
	c.seg.meeting = meeting
	c.list = append(c.list, c.seg)
	c.seg, c.begun, c.most = segment{meeting: None, layer: None}, nil, c.now(c.free)
}

// Ranks that meet in a collective leave it together: at most this many nanoseconds apart, by
// what clocks and kernels' ends vary, or much closer than they come (0.002 to 0.55 of it in real
// captures). Ranks that do not meet are as far apart behind it as before.
const (
	apartAtMost = 20e3
	closer      = 0.7
)

// meet finds the meetings of a step. It gives each kernel the number of its meeting, and each
// rank what to add to its clock, and whether ranks do not meet in the most frequent one.
func (s *Step) meet() (of [][]int, list []meeting, add []int64, split bool, err error) {
	byName := map[int32][][]int{} // by rank: positions of kernels
	of = make([][]int, len(s.Ranks))
	for r, kernels := range s.Ranks {
		of[r] = slices.Repeat([]int{None}, len(kernels))
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
			return nil, nil, nil, false, ErrUnlike
		}
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b int32) int { // the most frequent first, which tells clocks best
		return cmp.Or(cmp.Compare(len(byName[b][0]), len(byName[a][0])), cmp.Compare(a, b))
	})
	add = make([]int64, len(s.Ranks))
	var leader []int
	for i, name := range names {
		at := byName[name]
		if i == 0 || len(at[0]) >= leastMeetings {
			leader = s.leaders(at)
		}
		split = split || i == 0 && s.split(at)
		for r, l := range leader {
			if i == 0 && l != r {
				add[r] = int64(middle(s.apart(at, r, l, end)))
			}
		}
		for n := range at[0] {
			number := map[int]int{} // of meetings, by leader
			for r, l := range leader {
				if l == r {
					number[l] = len(list)
					list = append(list, meeting{name: name, transfer: math.Inf(1)})
				}
				k, m := &s.Ranks[r][at[r][n]], &list[number[l]]
				m.ranks++
				m.transfer = min(m.transfer, float64(k.End-k.Start))
				of[r][at[r][n]] = number[l]
			}
		}
	}
	return of, list, add, split, nil
}

func start(k *Kernel) int64 { return k.Start }
func end(k *Kernel) int64   { return k.End }

// apart is how much later one rank is than another at each collective of a name.
func (s *Step) apart(at [][]int, rank, other int, when func(*Kernel) int64) []float64 {
	by := make([]float64, len(at[rank]))
	for n := range by {
		by[n] = float64(when(&s.Ranks[other][at[other][n]]) - when(&s.Ranks[rank][at[rank][n]]))
	}
	return by
}

// leastMeetings is how many collectives of a name tell which ranks meet in them; those of rarer ones
// meet as in the name before.
const leastMeetings = 4

// leaders gives each rank the lowest one with which it leaves the collectives of a name.
func (s *Step) leaders(at [][]int) []int {
	leader := make([]int, len(at))
	for r := range at {
		leader[r] = r
		for l := range r {
			if ends := spread(s.apart(at, r, l, end)); leader[l] == l &&
				(ends <= apartAtMost || ends <= closer*spread(s.apart(at, r, l, start))) {
				leader[r] = l
				break
			}
		}
	}
	return leader
}

// spread is the 90th percentile of the distance from the median, by which clocks differ.
func spread(by []float64) float64 {
	center := middle(by)
	for i := range by {
		by[i] = math.Abs(by[i] - center)
	}
	slices.Sort(by)
	return by[(9*len(by)-1)/10]
}

// share gives a rank that ran no experts in a layer a place for them: its first segment up to a
// meeting before which another rank did.
func (s *replayed) share() {
	layers := map[int]int32{} // by meeting
	type place struct {
		rank  int
		layer int32
	}
	taken := map[place]bool{}
	for r, segments := range s.ranks {
		for i := range segments {
			if seg := &segments[i]; seg.layer != None {
				taken[place{r, seg.layer}] = true
				if seg.meeting >= 0 {
					layers[seg.meeting] = seg.layer
				}
			}
		}
	}
	for r, segments := range s.ranks {
		for i := range segments {
			seg := &segments[i]
			if layer, known := layers[seg.meeting]; known && seg.layer == None && !taken[place{r, layer}] {
				seg.layer, taken[place{r, layer}] = layer, true
			}
		}
	}
}
