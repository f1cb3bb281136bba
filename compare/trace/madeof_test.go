package trace

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/capture"
)

// op is one kernel of a model that is made of real ones.
type op struct {
	name   string
	ns     int64
	expert bool // a GEMM of experts
	graph  int  // ops in a row with the same number above 0 are of one replay
}

// parts are what a rank ran in one real step: between steps, and in one of its layers.
type parts struct{ begin, mixer, route, experts, combine, end []op }

var (
	realGEMM       = regexp.MustCompile(`GroupProblemShape|^fused_moe_kernel$`)
	realDense      = regexp.MustCompile(`^nvjet_`)
	realAttention  = regexp.MustCompile(`sdpa|FlashAttn`)
	realTopK       = regexp.MustCompile(`gatherTopK|topkGating`)
	realCollective = regexp.MustCompile(`ncclDevKernel_AllReduce|cross_device_reduce`)
)

// opsOf are a recording's kernels in order of launch.
func opsOf(rec *capture.Recording) (ops []op) {
	order := slices.Clone(rec.Kernels)
	slices.SortStableFunc(order, func(a, b capture.Kernel) int {
		return cmp.Or(cmp.Compare(rec.Launches[a.Launch].Start, rec.Launches[b.Launch].Start),
			cmp.Compare(a.Start, b.Start))
	})
	for _, k := range order {
		name := rec.KernelNames[k.Name]
		ops = append(ops, op{name: name, ns: k.End - k.Start, expert: realGEMM.MatchString(name)})
	}
	return ops
}

// partsOf cuts a recording whose steps have a known number of layers. A layer is what
// stands between the collectives behind two pairs of expert GEMMs; what more stands
// between the last layer of a step and the first of the next ends one and begins the other.
func partsOf(t *testing.T, rec *capture.Recording, layers, step int) parts {
	t.Helper()
	ops := opsOf(rec)
	var first, ends []int // of the layers
	for i, n := 0, 0; i < len(ops); i++ {
		if !ops[i].expert {
			continue
		}
		if n++; n%2 == 1 {
			first = append(first, i)
			continue
		}
		end := i + slices.IndexFunc(ops[i:], func(o op) bool { return realCollective.MatchString(o.name) })
		ends = append(ends, end)
	}
	at := step * layers
	layer := ops[ends[at]+1 : ends[at+1]+1]
	before := first[at+1] - ends[at] - 1
	p := parts{begin: ops[:first[0]-before], end: ops[ends[at+layers-1]+1:]}
	if at+layers < len(ends) {
		between := ops[ends[at+layers-1]+1 : first[at+layers]-before]
		p.end = between[:len(between)-len(p.begin)]
	}
	gate, topk := 0, 0 // the last dense GEMM before the choice of experts, which some hooks make twice
	for i, o := range layer {
		if realTopK.MatchString(o.name) {
			topk = i
		} else if realDense.MatchString(o.name) && topk == 0 {
			gate = i
		}
	}
	p.mixer, p.route, p.experts, p.combine = layer[:gate], layer[gate:topk+1], layer[topk+1:len(layer)-1],
		layer[len(layer)-1:]
	if !slices.ContainsFunc(p.mixer, func(o op) bool { return realAttention.MatchString(o.name) }) ||
		len(p.begin) == 0 || len(p.end) == 0 {
		t.Fatalf("no layer of its parts: %d of mixer, %d to begin with, %d at the end", len(p.mixer), len(p.begin),
			len(p.end))
	}
	return p
}

// model is what is made of real parts. Its numbers are of MoE layers in one step, unless
// they say something else.
type model struct {
	layers, steps int
	first         int    // dense layers in front
	every         int    // of so many layers the last one has experts
	sliding       int    // every so many have another kind of attention
	hybrid        int    // of so many layers the last one has attention, the others state space models
	chunks        int    // of tokens, in which the experts run
	routed        bool   // each behind a router of its own
	exchanged     bool   // each before a collective of its own
	shared        bool   // experts on a stream of their own, in a graph
	grouped       string // shared experts of the same kernel: "before" the router, "behind" it, or "last"
	graphs        string
	prefill       string // steps that run other kernels: "first", "third" or "random" ones
	batches       string // two: "aligned", "behind", "apart" or "overlapped"
	unmarked      bool   // nothing between steps
	fused         bool   // dispatch, experts and combine in one kernel, which waits for the slowest rank
	early, late   float64
}

// maker makes a model for one rank.
type maker struct {
	model
	parts
	load   []float64  // by layer
	random *rand.Rand // the same on all ranks
	noise  *rand.Rand // of the rank alone
	ops    []op
	graph  int
}

func renamed(ops []op, which *regexp.Regexp, suffix string) []op {
	ops = slices.Clone(ops)
	for i := range ops {
		if which.MatchString(ops[i].name) {
			ops[i].name += suffix
		}
	}
	return ops
}

func made(ns int64, names ...string) (ops []op) {
	for _, name := range names {
		ops = append(ops, op{name: name, ns: ns})
	}
	return ops
}

var (
	stateSpace = made(9000, "_causal_conv1d_fwd_kernel", "_chunk_cumsum_fwd_kernel", "_chunk_state_fwd_kernel",
		"_state_passing_fwd_kernel", "_bmm_chunk_fwd_kernel", "_chunk_scan_fwd_kernel")
	denseLayer = made(60000, "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT",
		"void vllm::act_and_mul_kernel<c10::BFloat16>(c10::BFloat16*)", "nvjet_tst_256x128_64x4_2x1_v_bz_coopB_TNT")
	megaMoE = "void deep_gemm::sm100_fp8_fp4_mega_moe_impl<7168u, 2048u>(CUtensorMap_st, int*)"
)

// layer adds a layer, of experts if load is above 0.
func (m *maker) layer(n int, load float64, prefill bool) {
	mixer, suffix := m.mixer, ""
	if m.sliding > 0 && n%m.sliding == m.sliding-1 {
		mixer = renamed(mixer, realAttention, "_sliding")
	}
	if m.hybrid > 0 && n%m.hybrid != m.hybrid-1 {
		at := slices.IndexFunc(mixer, func(o op) bool { return realAttention.MatchString(o.name) })
		rest := slices.DeleteFunc(slices.Clone(mixer[at:]),
			func(o op) bool { return realAttention.MatchString(o.name) })
		mixer = slices.Concat(mixer[:at], stateSpace, rest)
	}
	if prefill {
		suffix = "_prefill"
		mixer = renamed(mixer, realAttention, suffix)
	}
	if load == 0 {
		m.ops = slices.Concat(m.ops, mixer, denseLayer)
		return
	}
	experts := slices.Clone(m.experts)
	for i := range experts {
		if experts[i].expert {
			experts[i].ns = int64(load * (1 + 0.005*m.noise.NormFloat64()) * 1e6 / float64(max(m.chunks, 1)))
		}
	}
	from := len(m.ops)
	if m.moe(mixer, experts); m.graphs == "layers" {
		m.graph++
		for i := range m.ops[from:] {
			m.ops[from+i].graph = m.graph
		}
	}
}

// moe adds a layer's mixer and experts, in the order of its microbatches and chunks.
func (m *maker) moe(mixer, experts []op) {
	half, other := m.halves(experts)
	switch m.batches {
	case "aligned":
		m.ops = slices.Concat(m.ops, mixer, m.route, mixer, m.route, half, m.combine, other, m.combine)
		return
	case "behind":
		m.ops = slices.Concat(m.ops, mixer, mixer, m.route, half, m.combine, m.route, other, m.combine)
		return
	case "apart":
		m.ops = slices.Concat(m.ops, mixer, m.route, half, m.combine, mixer, m.route, other, m.combine)
		return
	case "overlapped":
		at := 1 + slices.IndexFunc(half, func(o op) bool { return o.expert })
		m.ops = slices.Concat(m.ops, mixer, m.route, half[:at], mixer, m.route, half[at:], m.combine, other, m.combine)
		return
	}
	if m.fused {
		m.ops = slices.Concat(m.ops, mixer, m.route, made(2e6+m.noise.Int64N(1e4), megaMoE))
		return
	}
	route := m.route
	for range max(m.chunks, 1) {
		list := slices.Concat(route, experts, m.combine)
		if m.shared { // a stream of their own starts them anywhere
			for at, i := len(route), 0; i < 3; i++ {
				at += m.noise.IntN(len(list) - at)
				list = slices.Insert(list, at, op{name: denseLayer[i].name + "_shared", ns: 5000})
				at++
			}
		}
		switch group := shared(m.experts); m.grouped {
		case "before":
			list = slices.Concat(group, list)
		case "behind":
			list = slices.Insert(slices.Clone(list), len(route), group...)
		case "last":
			list = slices.Concat(list, group)
		}
		if !m.exchanged && m.chunks > 1 {
			list = list[:len(list)-len(m.combine)]
		}
		m.ops = append(m.ops, slices.Concat(mixer, list)...)
		if mixer = nil; !m.routed {
			route = nil
		}
	}
	if !m.exchanged && m.chunks > 1 {
		m.ops = append(m.ops, m.combine...)
	}
}

// halves are the experts of two microbatches, which vary each on its own.
func (m *maker) halves(experts []op) (a, b []op) {
	a, b = slices.Clone(experts), slices.Clone(experts)
	for i := range experts {
		if experts[i].expert {
			a[i].ns = int64(float64(experts[i].ns) / 2 * (1 + 0.005*m.noise.NormFloat64()))
			b[i].ns = experts[i].ns - a[i].ns
		}
	}
	return a, b
}

// step adds a step, and says where its first layer begins.
func (m *maker) step(number int) {
	prefill := m.prefill == "first" && number == 0 || m.prefill == "third" && number%3 == 0 || m.prefill == "random" &&
		m.random.IntN(3) == 0
	from := len(m.ops)
	begin, end := m.begin, m.end
	if m.unmarked {
		begin, end = nil, nil
	}
	m.ops = append(m.ops, begin...)
	m.graph++
	body := len(m.ops)
	for range m.first {
		m.layer(0, 0, prefill)
	}
	for l := range m.layers {
		for range m.every - 1 {
			m.layer(l, 0, prefill)
		}
		scale := 1.0
		if prefill {
			scale = 5
		}
		m.layer(l, scale*m.load[l], prefill)
	}
	if prefill {
		for i := range m.ops[from:] {
			if o := &m.ops[from+i]; realDense.MatchString(o.name) {
				o.name, o.ns = o.name+"_prefill", 5*o.ns
			}
		}
	}
	for i := body; i < len(m.ops) && m.graphs == "steps"; i++ {
		m.ops[i].graph = m.graph
	}
	m.ops = append(m.ops, end...)
}

// make makes all steps, and cuts what was recorded of the first and the last.
func (m *maker) make() []op {
	lengths := []int{0}
	for n := range m.steps {
		m.step(n)
		lengths = append(lengths, len(m.ops))
	}
	cut := func(step int, share float64) int {
		return lengths[step] + int(share*float64(lengths[step+1]-lengths[step]))
	}
	return m.ops[cut(0, m.early) : len(m.ops)-(len(m.ops)-cut(m.steps-1, 1-m.late))]
}

// record writes ops as a recording on one device.
func record(like *capture.Recording, ops []op) *capture.Recording {
	rec := *like
	rec.Metadata.SessionUTC = 0 // the times are made up
	rec.KernelNames, rec.Operators, rec.Ranges, rec.GraphNodeIDs, rec.GraphNodes, rec.Kernels, rec.Launches = nil,
		[]string{""}, nil, nil, nil, nil, nil
	numbers := map[string]int32{}
	at := int64(0)
	for i, o := range ops {
		if _, known := numbers[o.name]; !known {
			numbers[o.name] = int32(len(rec.KernelNames))
			rec.KernelNames = append(rec.KernelNames, o.name)
		}
		if i == 0 || o.graph == 0 || o.graph != ops[i-1].graph {
			rec.Launches = append(rec.Launches, capture.Call{Start: at, End: at + 1})
		}
		k := capture.Kernel{Start: at, End: at + max(o.ns, 1), Name: numbers[o.name], Device: like.Kernels[0].Device,
			Launch: int32(len(rec.Launches) - 1)}
		rec.Kernels = append(rec.Kernels, k)
		at = k.End + 1
	}
	return &rec
}

// String names a model by what it differs in.
func (m model) String() string {
	type plain model
	s := fmt.Sprintf("%+v", plain(m))
	var list []string
	for _, field := range strings.Fields(strings.Trim(s, "{}")) {
		if name, value, _ := strings.Cut(field, ":"); value != "0" && value != "false" && value != "" {
			list = append(list, name+" "+value)
		}
	}
	return strings.Join(list, ", ")
}

// shared are experts that all tokens pass: their GEMMs take equally long in all layers.
func shared(experts []op) []op {
	experts = slices.Clone(experts)
	for i := range experts {
		if experts[i].expert {
			experts[i].ns = 400_000
		}
	}
	return experts
}
