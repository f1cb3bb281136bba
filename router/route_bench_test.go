package router

import (
	"math/rand/v2"
	"testing"
)

// gateRows is a gate of DeepSeek-V3's shape and rows to route: normal logits with
// a bias, or the two values of balanced logits.
func gateRows(b testing.TB, method Method, groups, tg int, twoValued bool, rows int) (Gate, []float32) {
	random := rand.New(rand.NewPCG(1, 2))
	g := Gate{Method: method, Shape: Shape{256, 8, groups, tg}}
	logits := make([]float32, rows*256)
	if twoValued {
		for i := range logits {
			logits[i] = -10
		}
		for slot := range 8 * rows { // two slots in each of four groups of 32
			token, group := slot/8, slot/8+slot%4
			logits[token*256+group%8*32+(token+slot%8)%32] = 10
		}
		return g, logits
	}
	for i := range logits {
		logits[i] = float32(2 * random.NormFloat64())
	}
	if method.Biased() {
		g.Bias = make([]float32, 256)
		for e := range g.Bias {
			g.Bias[e] = float32(random.Float64() - 0.5)
		}
	}
	return g, logits
}

func benchmarkRoute(b *testing.B, g Gate, logits []float32) {
	r, err := NewRouter(g)
	if err != nil {
		b.Fatal(err)
	}
	var ids [8]int32
	var weights [8]float32
	rows := len(logits) / 256
	b.SetBytes(256 * 4)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if err := r.Route(logits[n*256:(n+1)*256], ids[:], weights[:]); err != nil {
			b.Fatal(err)
		}
		if n++; n == rows {
			n = 0
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mtokens/s")
}

func BenchmarkRoute(b *testing.B) {
	for _, c := range []struct {
		name       string
		method     Method
		groups, tg int
		twoValued  bool
	}{
		{"DeepSeekV3/grouped/random", DeepSeekV3, 8, 4, false},
		{"DeepSeekV3/grouped/balanced", DeepSeekV3, 8, 4, true},
		{"DeepSeekV3/flat/random", DeepSeekV3, 0, 0, false},
		{"DeepSeekV4/random", DeepSeekV4, 0, 0, false},
		{"Renormalize/random", Renormalize, 0, 0, false},
		{"Default/random", Default, 0, 0, false},
	} {
		b.Run(c.name, func(b *testing.B) {
			g, logits := gateRows(b, c.method, c.groups, c.tg, c.twoValued, 4096)
			benchmarkRoute(b, g, logits)
		})
	}
}
