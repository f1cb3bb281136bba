package trace

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/moebalance/moebalance/compare/capture"
	"github.com/moebalance/moebalance/router"
)

// engine is a real capture whose parts models are made of.
type engine struct {
	name  string
	ranks []parts
	paths []string
	list  []*capture.Recording
}

func enginesOf(t *testing.T) (list []engine) {
	t.Helper()
	for _, c := range []struct {
		captures     string
		layers, step int
	}{{"hf-qwen3-ep4-nsys/normal.rank?.sqlite", 3, 1}, {"hf-qwen3-ep4/normal.rank?.json.gz", 3, 1},
		{"vllm/qwen3-normal.rank?.json.gz", 12, 0}} {
		e := engine{name: c.captures, paths: inTestdata(t, c.captures)}
		e.list = recordings(e.paths)
		for _, rec := range e.list {
			e.ranks = append(e.ranks, partsOf(t, rec, c.layers, c.step))
		}
		list = append(list, e)
	}
	return list
}

// outcome is what a trace of a made model says.
type outcome struct {
	layers, steps int
	unknown       string
	wrong         string // in what its imbalance differs from the loads
}

// tryModel makes a model of an engine's parts on some ranks, and reads the trace.
func tryModel(t *testing.T, e engine, m model, ranks int, seed uint64) outcome {
	t.Helper()
	draw := rand.New(rand.NewPCG(seed, 1))
	loads := make([][]float64, ranks)
	for rank := range loads {
		for range m.layers {
			loads[rank] = append(loads[rank], 0.5+draw.Float64())
		}
	}
	trace := changedAgain(t, e.paths[:ranks], e.list, func(rank int, rec *capture.Recording) {
		maker := maker{model: m, parts: e.ranks[rank], load: loads[rank], random: rand.New(rand.NewPCG(seed, 2)),
			noise: rand.New(rand.NewPCG(seed, uint64(3+rank)))}
		*rec = *record(rec, maker.make())
	})
	o := outcome{layers: int(trace.Structure.Layers), steps: int(trace.Structure.Steps), unknown: trace.Structure.Unknown}
	if o.layers != m.layers {
		return o
	}
	for _, row := range trace.Imbalance {
		if row.Level != router.LevelRank {
			continue
		}
		largest, sum := 0.0, 0.0
		for _, load := range loads {
			largest, sum = max(largest, load[row.Layer]), sum+load[row.Layer]
		}
		if want := largest / sum * float64(ranks); math.Abs(float64(row.MaxOverMean)-want) > 0.01*want {
			o.wrong += fmt.Sprintf(" layer %d: %.3f, want %.3f;", row.Layer, float64(row.MaxOverMean), want)
		}
	}
	return o
}

// told reports whether the steps and layers of a model can be told from its kernels.
func (m model) told() bool {
	return !m.unmarked && (m.grouped == "" || m.grouped == "behind") && m.batches != "apart" &&
		m.batches != "overlapped"
}

// Of all models whose structure can be told, the layers are found and their imbalance is
// the imbalance of the loads; for the others none is invented.
func TestStructures(t *testing.T) {
	if testing.Short() {
		t.Skip("makes some 170 captures")
	}
	engines := enginesOf(t)
	for i, m := range models() {
		e := engines[i%len(engines)]
		o := tryModel(t, e, m, 2, uint64(i))
		if m.early > 0 && o.steps == m.whole()+1 {
			o.steps-- // a first step that is cut before its first router has every phase of every layer
		}
		switch want := m.layers; {
		case !m.told() && (o.layers > 0 || o.unknown == ""):
			t.Errorf("%s, of %s: %d layers, want a doubt", m, e.name, o.layers)
		case m.told() && (o.layers != want || o.steps != m.whole() || o.wrong != ""):
			t.Errorf("%s, of %s: %d steps of %d layers (%s), want %d of %d;%s",
				m, e.name, o.steps, o.layers, o.unknown, m.whole(), want, o.wrong)
		}
	}
}

// whole is how many steps are recorded whole.
func (m model) whole() (steps int) {
	steps = m.steps
	if m.early > 0 {
		steps--
	}
	if m.late > 0 {
		steps--
	}
	return steps
}

// models are all kinds of structures, each with few layers and with many.
func models() (list []model) {
	changes := []func(*model){
		func(*model) {},
		func(m *model) { m.first = 1 },
		func(m *model) { m.every = 2 },
		func(m *model) { m.every, m.first = 4, 1 },
		func(m *model) { m.sliding = 2 },
		func(m *model) { m.sliding, m.first = 6, 1 },
		func(m *model) { m.hybrid = 4 },
		func(m *model) { m.hybrid, m.every = 8, 2 },
		func(m *model) { m.chunks = 2 },
		func(m *model) { m.chunks, m.exchanged = 3, true },
		func(m *model) { m.chunks, m.exchanged, m.shared = 2, true, true },
		func(m *model) { m.chunks, m.routed, m.exchanged = 2, true, true },
		func(m *model) { m.shared = true },
		func(m *model) { m.shared, m.graphs = true, "steps" },
		func(m *model) { m.graphs, m.sliding = "layers", 2 },
		func(m *model) { m.prefill = "first" },
		func(m *model) { m.prefill, m.steps = "third", 9 },
		func(m *model) { m.prefill, m.steps = "random", 12 },
		func(m *model) { m.grouped = "before" },
		func(m *model) { m.grouped = "behind" },
		func(m *model) { m.grouped, m.first = "last", 1 },
		func(m *model) { m.batches = "aligned" },
		func(m *model) { m.batches, m.first = "behind", 2 },
		func(m *model) { m.batches = "apart" },
		func(m *model) { m.batches = "overlapped" },
		func(m *model) { m.unmarked, m.sliding = true, 3 },
		func(m *model) { m.early, m.steps = 0.6, 5 },
		func(m *model) { m.late, m.steps = 0.6, 5 },
		func(m *model) { m.early, m.late, m.steps = 0.3, 0.3, 6 },
		func(m *model) { m.prefill, m.early, m.steps = "first", 0.4, 6 },
	}
	for i, change := range changes {
		for _, layers := range []int{2, 3, 6, 12, []int{24, 48, 94}[i%3]} {
			m := model{layers: layers, steps: 4}
			change(&m)
			list = append(list, m)
		}
	}
	return list
}
