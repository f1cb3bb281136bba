package page

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"errors"
	"html"
	"io"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/logits"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/table"
)

var defaults = gain.Criteria{Threshold: gain.DefaultThreshold, Confidence: gain.DefaultConfidence,
	Tolerance: gain.DefaultTolerance}

// captures reads one arm of a real capture.
func captures(t *testing.T, pattern string) *nsys.Trace {
	t.Helper()
	paths, err := filepath.Glob("../../testdata/" + pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no capture %s: %v", pattern, err)
	}
	trace, err := nsys.Read(context.Background(), paths, nsys.Options{Threshold: 0.1})
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

// campaign is six pairs whose perfect launches are by the given share faster.
func campaign(won float64) *source.Campaign {
	c := gain.Campaign{Criteria: defaults, Command: "bench <model> & more", Metric: gain.Metric{Name: "throughput",
		Unit: "tok/s", HigherIsBetter: true, Definition: "throughput/tokens by the kitchen clock"}, Compared: true}
	for i := range 12 {
		l := gain.Launch{Pair: i/2 + 1, Arm: gain.Arms[(i+i/2)%2], Position: i, Status: gain.StatusOK, Value: 1000 +
			float64(7*i%5)}
		if l.Arm == gain.Perfect {
			l.Value *= 1 + won
		}
		c.Launches = append(c.Launches, l)
	}
	c.Differences = []gain.Difference{{Kind: "environment", Name: "ENABLE_PERFECT_ROUTER", Perfect: "1",
		Declared: true}}
	for _, arm := range gain.Arms {
		c.Proof = append(c.Proof, gain.Proof{Arm: arm, Rank: 0, Grade: gain.Measured,
			Evidence: "rank load max/mean 1.000"})
	}
	return &source.Campaign{Result: gain.Judge(c)}
}

func cache() *logits.Verification {
	return &logits.Verification{SchemaVersion: logits.VerificationSchema, Kind: logits.VerificationKind,
		Balance: []logits.BatchBalance{
			{TokensPerRank: 1, ExpertMaxOverMean: 8, ExpertFloor: 8, RankMaxOverMean: 2, RankFloor: 2, ActiveExperts: 4,
				ActiveExpertsIdeal: 4, AtFloor: true},
			{TokensPerRank: 8, ExpertMaxOverMean: 1.5, ExpertFloor: 1, RankMaxOverMean: 1, RankFloor: 1,
				ActiveExperts:      32,
				ActiveExpertsIdeal: 32},
		}}
}

// program wraps items as inputs whose headlines name them.
func programOf(items ...source.Item) (p Program) {
	for _, in := range items {
		p.Inputs = append(p.Inputs, Input{Item: in})
	}
	return p
}

func write(t *testing.T, programs ...Program) (Page, string) {
	t.Helper()
	p, err := New("A <title> & more", []Fact{{"Report", "yesterday"}}, programs...)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	checkPage(t, b.String())
	return p, b.String()
}

// page is a page of one program, and its text with plain spaces and signs.
func page(t *testing.T, items ...source.Item) (Page, string) {
	t.Helper()
	p, doc := write(t, programOf(items...))
	return p, strings.NewReplacer("</span> <span>", " ", "\u00a0", " ", "&#43;", "+", "&#39;", "'", "&amp;",
		"&").Replace(doc)
}

var infinity = regexp.MustCompile(`\bInf\b`)

var reference = regexp.MustCompile(`(?i)(src|href|url|import|action|data)\s*[=(]\s*["']?([^"'\s>)]+)`)

// checkPage wants well-formed markup with nothing from outside, no script, and
// every figure described and every link's target there.
func checkPage(t *testing.T, doc string) {
	t.Helper()
	checkPolicy(t, doc)
	ids, links := map[string]bool{}, []string{}
	d := xml.NewDecoder(strings.NewReader(doc))
	d.Entity = xml.HTMLEntity
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if name := start.Name.Local; slices.Contains([]string{"script", "link", "iframe", "object", "img", "image"},
			name) {
			t.Errorf("the page has a <%s>", name)
		}
		for _, a := range start.Attr {
			switch a.Name.Local {
			case "id":
				if ids[a.Value] {
					t.Errorf("two elements have the id %q", a.Value)
				}
				ids[a.Value] = true
			case "href", "aria-labelledby":
				links = append(links, strings.TrimPrefix(a.Value, "#"))
			}
		}
	}
	for _, l := range links {
		if !ids[l] {
			t.Errorf("nothing has the id %q", l)
		}
	}
	for _, m := range reference.FindAllStringSubmatch(doc, -1) {
		if !strings.HasPrefix(m[2], "#") && strings.ContainsAny(m[2], "/:") {
			t.Errorf("the page refers to %q", m[0])
		}
	}
	if strings.Contains(doc, "://") || strings.Contains(doc, "NaN") || infinity.MatchString(doc) ||
		strings.Contains(doc, "ZgotmplZ") {
		t.Error("the page holds an address, a NaN, an Inf or something the template refused")
	}
	if figures, titled := strings.Count(doc, "<svg"), strings.Count(doc, "<svg viewBox"); figures != titled ||
		strings.Count(doc, "<desc>") != figures {
		t.Errorf("%d figures, %d of them with a description", figures, strings.Count(doc, "<desc>"))
	}
}

func titles(p Page) (out []string) {
	for _, part := range p.programs {
		for _, s := range part.Sections {
			out = append(out, s.ID)
		}
	}
	return out
}

func names(p Page) (out []string) {
	for _, f := range p.Figures() {
		out = append(out, f.Name)
	}
	return out
}

func TestWholePage(t *testing.T) {
	normal, perfect := captures(t, "gptoss-ep4-loop/normal.sqlite"), captures(t, "gptoss-ep4-loop/perfect.sqlite")
	compared := diff.Compare(normal, perfect)
	inputs := []source.Item{{Name: "b", Trace: perfect}, {Name: "a", Trace: normal}, {Name: "c", Compared: &compared},
		{Name: "bench.json", Campaign: campaign(0.2)}, {Name: "cache", Cache: cache()}}
	p, doc := page(t, inputs...)
	if want := []string{"gain", "where", "imbalance", "time-load", "data"}; !slices.Equal(titles(p), want) {
		t.Errorf("sections %v, want %v", titles(p), want)
	}
	if want := []string{"gain", "phase-time", "layer-loss", "step-time", "rank-time",
		"rank-layer-time", "expert-time"}; !slices.Equal(names(p), want) {
		t.Errorf("figures %v, want %v", names(p), want)
	}
	at := -1
	for _, want := range []string{ // in this order
		"<span>A &lt;title&gt; & more</span>",
		`<strong class="badge bad">imbalance significant</strong>`,
		"Balanced routing is 20.0 % faster.</h1>",
		"<dt>gain</dt>", "gain of even ranks alone",
		" pairs gain: ",
		"Unknown: no load is recorded beside the traces.",
		"each arm's routing was measured", "Campaign and traces were recorded separately",
		"What do the numbers mean?", "yesterday",
	} {
		next := strings.Index(doc, want)
		if next <= at {
			t.Errorf("%q is at %d, after what was at %d", want, next, at)
		}
		at = next
	}
	if _, again := page(t, inputs...); again != doc {
		t.Error("the same inputs gave another page")
	}
	if figures := regexp.MustCompile(`(?s)<svg.*?</svg>`); true {
		swapped := slices.Clone(inputs)
		swapped[0], swapped[1] = swapped[1], swapped[0]
		if _, again := page(t, swapped...); !slices.Equal(figures.FindAllString(again, -1),
			figures.FindAllString(doc, -1)) {
			t.Error("the order of the arms on the command line changed the figures")
		}
	}
}

// Results of different programs have answers of their own, and no advice joins them.
func TestProgramsStayApart(t *testing.T) {
	trace := captures(t, "gptoss-ep4-loop/normal.sqlite")
	other := programOf(source.Item{Name: "toy", Campaign: campaign(0.6)})
	alone, _ := write(t, programOf(source.Item{Name: "n", Trace: trace}))
	both, doc := write(t, programOf(source.Item{Name: "n", Trace: trace}), other, other)
	if got, want := both.programs[0].Answer, alone.programs[0].Answer; !reflect.DeepEqual(got.Numbers[0].Value,
		want.Numbers[0].Value) || got.Line != want.Line {
		t.Errorf("beside another program the answer is %v, alone %v", got, want)
	}
	if got := both.programs[1].Answer.Line; got != "Balanced routing is 60.0 % faster." {
		t.Errorf("the other program's answer is %q", got)
	}
	if !strings.Contains(doc, `<p class="apart">Another program: bench &lt;model&gt; &amp; more. The answer`) {
		t.Error("the page does not set the programs apart")
	}
	seen := map[string]bool{}
	for _, name := range names(both) {
		if seen[name] {
			t.Errorf("two figures are called %s", name)
		}
		seen[name] = true
	}
}

// A section appears only when an input speaks to it, and the answer is by the strongest
// evidence.
func TestSectionsFollowInputs(t *testing.T) {
	for _, c := range []struct {
		in       source.Item
		sections []string
		says     string
	}{
		{source.Item{Name: "bench.json", Campaign: campaign(0.05)}, []string{"gain", "data"},
			"Balanced routing is 5.0 % faster."},
		{source.Item{Name: "cache.json", Cache: cache()}, []string{"data"},
			"All 0 files are exact; 1 of 2 batch sizes are as balanced as can be."},
		{source.Item{Name: "counts.json", Counts: &counts.Result{}}, []string{},
			"No answer: no load is recorded."},
		{source.Item{Name: "graph.json", Trace: captures(t, "gptoss-graph/node-normal.sqlite")},
			[]string{"where", "time-load", "data"}, "No answer: one rank was given;"},
		{source.Item{Name: "hidden.json", Trace: captures(t, "gptoss-graph/graph-normal.sqlite")},
			[]string{"where", "time-load", "data"}, "hide the kernels inside"},
		{source.Item{Name: "one.json", Trace: captures(t, "gptoss-ep4-loop/normal.sqlite")},
			[]string{"where", "imbalance", "time-load", "data"}, "would gain about"},
	} {
		p, doc := page(t, c.in)
		if !slices.Equal(titles(p), c.sections) {
			t.Errorf("%s: sections %v, want %v", c.in.Name, titles(p), c.sections)
		}
		if !strings.Contains(doc, c.says) {
			t.Errorf("%s: the page does not say %q", c.in.Name, c.says)
		}
	}
}

func TestVerdictsLeadSomewhere(t *testing.T) {
	few := campaign(0.2)
	few.Result = gain.Judge(gain.Campaign{Criteria: defaults, Compared: true, Differences: few.Differences,
		Proof: few.Proof, Metric: few.Metric, Launches: []gain.Launch{
			{Pair: 1, Arm: gain.Normal, Status: "ok", Value: 100}, {Pair: 1, Arm: gain.Perfect, Position: 1,
				Status: "ok",
				Value:  115},
			{Pair: 2, Arm: gain.Perfect, Position: 2, Status: "ok", Value: 118},
			{Pair: 2, Arm: gain.Normal, Position: 3,
				Status: "ok", Value: 100},
		}})
	near := campaign(0.0995) // between its threshold and its noise
	random := campaign(0.2)
	random.Chance = true
	unproved := campaign(0.2)
	unproved.Verdict = gain.Invalid
	unproved.Checks = append(unproved.Checks, gain.Check{Name: gain.CheckProof, Status: gain.Fail,
		Text: "rank 3 of the perfect arm is not balanced"})
	claimed := campaign(0.2)
	claimed.Balance = gain.Claimed
	p, doc := page(t, source.Item{Name: "bench.json", Campaign: unproved})
	if len(p.Figures()) > 0 {
		t.Errorf("an invalid campaign has the figure %q", p.Figures()[0].Title)
	}
	if !strings.Contains(doc, `<strong class="badge bad">invalid</strong>`) || strings.Contains(doc, "faster") {
		t.Error("the page of an invalid campaign tells a gain, or not that it is invalid")
	}
	for want, c := range map[string]*source.Campaign{
		"Balanced routing is 20.0 % faster.": campaign(0.2),
		"balance claimed, not measured":      claimed,
		"Balanced routing is 4.0 % faster.":  campaign(0.04),
		"Balanced routing is 10.0 % slower.": campaign(-0.1),
		"No decision: 2 pairs are too few":   few,
		"Undecided: balanced routing is":     near,
		"Random routing is 20.0 % faster.":   random,
		"tokens by the kitchen clock.":       campaign(0.3),
	} {
		if _, doc := page(t, source.Item{Name: "bench.json", Campaign: c}); !strings.Contains(doc, want) {
			t.Errorf("verdict %s: the page does not say %q", c.Verdict, want)
		}
	}
}

// What an unfinished campaign says so far is no verdict, wherever the page tells it.
func TestUnfinishedCampaignsHaveNoVerdict(t *testing.T) {
	for _, verdict := range []gain.Verdict{gain.Significant, gain.NotSignificant, gain.Inconclusive} {
		c := campaign(0.2)
		c.Verdict = verdict
		c.Campaign = source.CampaignState{Folder: "a/campaign", Pairs: 8, Left: 4}
		p, doc := page(t, source.Item{Name: "bench.json", Campaign: c})
		for _, want := range []string{"Unfinished, 4 of", "<title>Unfinished, 4 of", "moebalance bench --resume a/campaign", "no verdict"} {
			if !strings.Contains(doc, want) {
				t.Errorf("%s: the page does not say %q", verdict, want)
			}
		}
		if title := p.Figures()[0].Title; title != "No verdict: unfinished, 4 launches left" {
			t.Errorf("%s: the figure is called %q", verdict, title)
		}
		if strings.Contains(doc, string(gain.Significant)) {
			t.Errorf("%s: the page tells a verdict", verdict)
		}
	}
}

// Every result survives its own JSON: what a verb wrote gives the page that its
// value gives.
func TestReadWhatVerbsWrite(t *testing.T) {
	normal, perfect := captures(t, "gptoss-ep4-loop/normal.sqlite"), captures(t, "gptoss-ep4-loop/perfect.sqlite")
	compared := diff.Compare(normal, perfect)
	for _, c := range []struct {
		in    source.Item
		value any
	}{
		{source.Item{Name: "x", Trace: normal}, normal},
		{source.Item{Name: "x", Campaign: campaign(0.2)}, campaign(0.2)},
		{source.Item{Name: "x", Compared: &compared}, compared},
		{source.Item{Name: "x", Cache: cache()}, cache()},
	} {
		b, err := json.Marshal(c.value)
		if err != nil {
			t.Fatal(err)
		}
		in, err := source.ParseResult("x", b)
		if err != nil {
			t.Fatal(err)
		}
		_, want := page(t, c.in)
		if _, got := page(t, in); got != want {
			t.Errorf("a %T changes on its way through JSON", c.value)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	for doc, want := range map[string]string{
		"":                                      "unexpected end of JSON input",
		"[1, 2]":                                "cannot unmarshal",
		"{}":                                    `have JSON without a kind`,
		`{"kind": "lunch"}`:                     `have kind "lunch"`,
		`{"kind": "trace"}`:                     "schema_version: want at most 2, have 0",
		`{"kind": "trace", "schema_version":9}`: "schema_version: want at most 2, have 9",
		`{"kind": "bench", "schema_version":1, "pairs": 3}`: "a result of bench",
	} {
		_, err := source.ParseResult("in.json", []byte(doc))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "in.json") ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want one line with %q", doc, err, want)
		}
	}
	if _, err := source.ParseResult("in.json", []byte("{}")); !errors.Is(err, source.ErrUnknown) {
		t.Errorf("%v does not wrap source.ErrUnknown", err)
	}
	for _, inputs := range [][]source.Item{nil, {{Name: "empty"}},
		{{Name: "two", Cache: cache(), Campaign: campaign(0.2)}}} {
		if _, err := New("t", nil, programOf(inputs...)); err == nil || !strings.Contains(err.Error(), "want") {
			t.Errorf("%v: want a refusal, have %v", inputs, err)
		}
	}
}

// A trace of which nothing is defined gives a page, and no number.
func TestUndefinedStaysUndefined(t *testing.T) {
	nan := router.Undefined()
	trace := &nsys.Trace{
		SchemaVersion: 1, Kind: "trace", Arm: "normal", Ranks: []nsys.Rank{{Rank: 0}},
		Coverage: nsys.Coverage{LaunchShare: nan, LayerShare: nan, ExpertShare: nan},
		Imbalance: []imbalance.Row{{Layer: 0, Level: "rank", Quantity: "time", MaxOverMean: nan, Imbalance: nan,
			Floor: nan, NullP95: nan, Worst: -1}},
		Stragglers: []imbalance.Straggler{{LossNS: nan, MeanNS: nan, MaxNS: nan}},
		Kernels:    []nsys.KernelStat{{Name: "k", Stats: nsys.Stats{MedianNS: nan}}},
		Cells:      []nsys.Cell{{Rank: 0, Step: 0, Layer: 0, Phase: nsys.PhaseExperts, TotalNS: 10}},
	}
	if _, doc := page(t, source.Item{Name: "x", Trace: trace}); !strings.Contains(doc,
		"– of the GPU time of learned routing is attributed") ||
		!strings.Contains(doc, "No answer: one rank was given;") {
		t.Error("an undefined share or answer is not shown as unknown")
	}
}

// Tables stand in the section of their kind, long ones folded, unknown ones nowhere.
func TestTables(t *testing.T) {
	p := programOf(source.Item{Name: "bench.json", Campaign: campaign(0.2)})
	rows := slices.Repeat([][]any{{"pass", 12}}, mostRows+5)
	columns := []table.Column{{Name: "status"}, {Name: "n", Kind: table.Count}}
	p.Inputs[0].Tables = []table.Table{{Name: "checks", Title: "T<1>", Columns: columns, Rows: rows},
		{Name: "pairs", Title: "T2", Columns: columns, Rows: rows[:1]}, {Name: "odd", Title: "T3", Columns: columns,
			Rows: rows}, {Name: "proof", Title: "T4", Columns: columns}}
	_, doc := write(t, p)
	for want, is := range map[string]bool{"<summary>T&lt;1&gt; (150 rows, 5 more left out)</summary>": true,
		`<h3>T2</h3>`: true, "T3": false, "T4": false,
		`<td class="good">pass</td><td class="n">12</td>`: true} {
		if strings.Contains(doc, want) != is {
			t.Errorf("%q: want %t", want, is)
		}
	}
}

// Whatever Read accepts, New and Write take without a panic, and the page stays
// well-formed and alone.
func FuzzRead(f *testing.F) {
	bench, err := json.Marshal(campaign(0.2))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(bench)
	f.Add([]byte(`{"kind":"trace","schema_version":1,"cells":[{"rank":-7,"step":-1,"layer":2,"phase":"experts","total_ns":-5}],"collectives":[{"rank":9}],"stragglers":[{"layer":1,"loss_ns":1e300}]}`))
	f.Add([]byte(`{"kind":"trace","schema_version":1,"arm":"<b>","ranks":[{"rank":0}],"experts":[{"rank":1,"layer":-1,"expert":5,"slots":-3,"slots_known":true}],"imbalance":[{"level":"rank","quantity":"time","imbalance":null}]}`))
	f.Add([]byte(`{"kind":"compare","schema_version":1,"ceiling":{"gain_bound":0.1},"phases":[{"phase":"experts"}],"stragglers":[{"layer":-1}]}`))
	f.Add([]byte(`{"kind":"logits verify","schema_version":1,"balance":[{"tokens_per_rank":-1,"expert_floor":null}]}`))
	f.Add([]byte(`{"kind":"counts","schema_version":1,"imbalance":[{"source":"\u0000","layer":1}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		in, err := source.ParseResult("in", b)
		if err != nil {
			return
		}
		p, err := New("", nil, programOf(in))
		if err != nil {
			return
		}
		if err := p.Write(io.Discard); err != nil {
			t.Fatal(err)
		}
	})
}

// A page of points shows the curve, one of further arms the share, and one of builds does
// not speak of balance where it gives the verdict.
func TestPointsArmsAndBuilds(t *testing.T) {
	judged := func(change func(*gain.Campaign, []gain.Launch) []gain.Launch) *source.Campaign {
		c := gain.Campaign{Criteria: defaults, Metric: gain.Metric{Name: "throughput", Unit: "tok/s",
			HigherIsBetter: true}, Compared: true,
			Proof: []gain.Proof{{Arm: gain.Normal, Rank: gain.AllRanks, Grade: gain.Measured},
				{Arm: gain.Perfect, Rank: gain.AllRanks, Grade: gain.Measured}},
			Differences: []gain.Difference{{Kind: "environment", Name: "X", Declared: true}}}
		var launches []gain.Launch
		for i := range 16 {
			arm := gain.Arms[(i+i/2)%2]
			value := 100 + float64(i%3)
			if arm == gain.Perfect {
				value *= 1.2
			}
			launches = append(launches, gain.Launch{Pair: i / 2, Arm: arm, Position: i, Status: gain.StatusOK,
				Value: value})
		}
		c.Launches = change(&c, launches)
		return &source.Campaign{Result: gain.Judge(c)}
	}
	points := judged(func(c *gain.Campaign, launches []gain.Launch) (out []gain.Launch) {
		c.PointName, c.Points = "concurrency", []gain.Point{{Value: 1, TokensPerExpert: 1},
			{Value: 8, TokensPerExpert: 2}, {Value: 64, TokensPerExpert: 16}}
		for _, l := range launches {
			for i, p := range c.Points {
				l.Point = p.Value
				if i == 0 && l.Arm == gain.Perfect {
					l.Value /= 1.3
				}
				out = append(out, l)
				if i == 0 && l.Arm == gain.Perfect {
					l.Value *= 1.3
				}
			}
		}
		return out
	})
	arms := judged(func(c *gain.Campaign, launches []gain.Launch) []gain.Launch {
		c.More = []gain.Arm{"balancer"}
		for i := range 8 {
			launches = append(launches, gain.Launch{Pair: i, Arm: "balancer", Position: 100 + i, Status: gain.StatusOK,
				Value: 110})
		}
		c.Differences = append(c.Differences, gain.Difference{Kind: "argument", Name: "--n", Declared: true,
			Arm: "balancer"})
		return launches
	})
	builds := judged(func(c *gain.Campaign, launches []gain.Launch) []gain.Launch {
		c.Builds, c.Proof = [2]gain.Arm{"before", "after"}, nil
		return launches
	})
	launched := *points
	launched.Design = gain.WithinLaunch
	for _, k := range []struct {
		campaign *source.Campaign
		want     []string
	}{
		{&launched, []string{"Measured at 3 points, 8 launches each;"}},
		{points, []string{"Measured at 3 points, 8 complete pairs each;", "At concurrency 1 the gain is −7.3 % (−9.1 % to −5.6 %); at concurrency 64 the gain is +20.4 %",
			"crossover at concurrency", "tokens per active expert", "faster at concurrency 8",
			"simultaneous interval"}},
		{arms, []string{"balancer recovers"}},
		{builds, []string{"Compare the builds at the loads that you serve.", "Which build is faster?", "after over before",
			"after is 20.4 % faster than before.", "there is no balance to prove"}},
	} {
		_, text := page(t, source.Item{Name: "c", Campaign: k.campaign})
		for _, want := range k.want {
			if !strings.Contains(strings.ToLower(text), strings.ToLower(want)) {
				t.Errorf("the page lacks %q: %q", want, text)
			}
		}
	}
}

// Checks that warn are named where the page says that none fails.
func TestWarningsOfChecksAreNamed(t *testing.T) {
	c := campaign(0.2)
	c.Proof, c.Checks = []gain.Proof{{Arm: gain.Normal, Grade: gain.Measured}},
		[]gain.Check{{Name: gain.CheckDrift, Status: gain.Pass}}
	if got, want := proofSentence(
		c), "The campaign passes its checks, and each arm's routing was measured (1 proof)."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	c.Checks = append(c.Checks, gain.Check{Name: gain.CheckOutliers, Status: gain.Warn},
		gain.Check{Name: "other_load", Status: gain.Warn})
	if got, want := proofSentence(
		c), "No check of the campaign fails (warnings: outliers, other load), and each arm's routing was measured (1 proof)."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A name turns no line around, is no markup, and gives no secret away.
func TestPageOfHostileNames(t *testing.T) {
	bad := "a\u202eb <script>alert(1)</script> /?api_key=hunter2 sk-abc123def456"
	in := Input{Item: source.Item{Name: bad, Cache: cache()}, Notes: []string{bad},
		Tables: []table.Table{{Name: "balance", Title: bad, Columns: []table.Column{{Name: "x"}},
			Rows: [][]any{{bad}}}}}
	p, err := New(bad, []Fact{{"Report", bad}}, Program{Inputs: []Input{in}})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	checkPage(t, b.String())
	if found := regexp.MustCompile(`<script|\x{202e}|hunter2|sk-abc`).FindAllString(b.String(), -1); len(found) > 0 {
		t.Errorf("the page holds %q", found)
	}
}

// checkPolicy wants a page that allows itself its one style sheet and nothing else, and
// that needs nothing more.
func checkPolicy(t *testing.T, doc string) {
	t.Helper()
	head, rest, _ := strings.Cut(doc, "<style>")
	sheet, _, _ := strings.Cut(rest, "</style>")
	sum := sha256.Sum256([]byte(sheet))
	want := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; "
	_, rest, _ = strings.Cut(head, `http-equiv="Content-Security-Policy" content="`)
	allowed, _, _ := strings.Cut(rest, `"`)
	if got := html.UnescapeString(allowed); !strings.HasPrefix(got, want) || strings.Contains(got, "unsafe") {
		t.Errorf("the policy is %q, want %q first", got, want)
	}
	if needs := regexp.MustCompile(
		`(?i)<[^>]*\s(?:style|on[a-z]+)=|<(?:script|link|iframe|img|object)\b`).FindAllString(doc, -1); len(needs) > 0 {
		t.Errorf("the page needs more than its policy allows: %q", needs[:min(len(needs), 3)])
	}
}
