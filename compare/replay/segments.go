package replay

import (
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// latency is what lies before a kernel whatever it does, in nanoseconds.
type latency struct {
	launch float64 // from the begin of its launch, to an idle GPU
	gap    float64 // from the end of the kernel before it, where it was launched in time
}

// latencies has one for kernels launched one by one, and one for kernels that a graph replays.
type latencies map[bool]latency

// measure takes medians over all kernels: of the launch where the GPU was idle when it began,
// of the gap where it was busy.
func measure(steps []Step) latencies {
	launches, gaps := map[bool][]float64{}, map[bool][]float64{}
	for _, s := range steps {
		for r, kernels := range s.Ranks {
			free := s.Free[r]
			for i := range kernels {
				switch k := &kernels[i]; {
				case k.Launch == None || k.Start < free:
				case k.Launch >= free:
					launches[k.Replayed] = append(launches[k.Replayed], float64(k.Start-k.Launch))
				default:
					gaps[k.Replayed] = append(gaps[k.Replayed], float64(k.Start-free))
				}
				free = max(free, kernels[i].End)
			}
		}
	}
	l := latencies{}
	for _, replayed := range []bool{false, true} {
		l[replayed] = latency{quantile(0.5, launches[replayed]), quantile(0.5, gaps[replayed])}
	}
	return l
}

// quantile is the least value that a share of the values does not exceed, 0 of nothing: 0.5 of 1, 2, 3 and 4 is 2. It
// sorts the values.
func quantile(share float64, values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return stat.Quantile(share, stat.Empirical, values, nil)
}

// leastScale is the least factor of work for which the paths kept are the longest ones.
const leastScale = 0.5

// cutter cuts a rank's kernels into segments.
type cutter struct {
	latencies
	now    func(ns int64) float64 // in the step's clock
	free   int64
	seg    segment
	most   float64 // the latest path so far: its start less the work before it
	list   []segment
	met    int  // segments up to the last meeting of ranks
	routed bool // experts ran since
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
			c.seg.all[k.Class] += float64(own)
			c.free = k.End
		}
		if k.Class == Experts && k.Layer != None {
			c.seg.layer, c.routed = k.Layer, c.routed || !k.Beside
		}
	}
	c.close(None)
}

// start takes what lies before a kernel: the gap to the one before, and its launch. A kernel
// that was launched in time and starts late waits for something that is not recorded, such as
// a copy on its stream, which no change makes shorter.
func (c *cutter) start(k *Kernel) {
	before := c.latencies[k.Replayed]
	allowed := c.now(k.Launch) + before.launch
	if free := float64(k.Start - c.free); free >= 0 {
		c.seg.all[gap] += before.gap
		if k.Launch != None && allowed < c.now(c.free) && free > before.gap {
			c.seg.all[gap] += free - before.gap
			c.unseen += free - before.gap
		}
	}
	done := leastScale*floats.Sum(c.seg.all[:gap]) + c.seg.all[gap]
	if k.Launch != None && allowed-done > c.most { // else an earlier path is longer
		c.most = allowed - done
		c.seg.paths = append(c.seg.paths, path{allowed, c.seg.all})
	}
}

// close ends the segment at a meeting.
func (c *cutter) close(meeting int) {
	c.seg.meeting = meeting
	if c.list = append(c.list, c.seg); meeting != wait {
		for i := c.met; i < len(c.list); i++ {
			c.list[i].before, c.list[i].routed = meeting, c.routed
		}
		c.met, c.routed = len(c.list), false
	}
	c.seg, c.most = segment{meeting: None, layer: None}, c.now(c.free)
}

// place gives a rank that ran no experts in a layer a place for them, its first segment up to a
// meeting before which another rank did, and sums the work of each class. Where no rank ran routed experts since they
// met, such as before they exchange their tokens, shared experts and quantization follow a rank's own tokens.
func (s *replayed) place() {
	type place struct {
		rank  int
		layer int32
	}
	taken, list := map[place]bool{}, s.meetings.list
	each := func(visit func(rank int, seg *segment)) {
		for r, segments := range s.ranks {
			for i := range segments {
				visit(r, &segments[i])
			}
		}
	}
	routed := map[int]bool{} // by meeting behind
	each(func(_ int, seg *segment) { routed[seg.before] = routed[seg.before] || seg.routed })
	each(func(r int, seg *segment) {
		if !routed[seg.before] {
			seg.own()
		}
		if seg.layer == None {
			return
		}
		if taken[place{r, seg.layer}] = true; seg.meeting >= 0 {
			list[seg.meeting].layer = seg.layer
		}
	})
	s.of = [classes]byLayer{Experts: {}, Tokens: {}}
	each(func(r int, seg *segment) {
		if seg.layer == None && seg.meeting >= 0 {
			if at := (place{r, list[seg.meeting].layer}); at.layer != None && !taken[at] {
				seg.layer, taken[at] = at.layer, true
			}
		}
		s.of[Tokens].at(int32(seg.meeting), len(s.ranks))[r] += seg.all[Tokens]
		if seg.layer != None {
			s.of[Experts].at(seg.layer, len(s.ranks))[r] += seg.all[Experts]
		}
	})
}
