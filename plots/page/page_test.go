package page

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"html"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/answer"
	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/logits"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/table"
	"github.com/moebalance/moebalance/testdata/require"
)

// campaign is six pairs whose perfect launches are by the given share faster.
func campaign(won float64) *source.Campaign {
	c := gain.Recorded{Head: gain.Head{Threshold: gain.DefaultThreshold, Command: "bench <model> & more",
		Metric: gain.Metric{Name: "throughput", Unit: "tok/s", HigherIsBetter: true,
			Definition: "throughput/tokens by the kitchen clock"}}, Compared: true}
	for i := range 12 {
		l := gain.Measurement{Unit: i/2 + 1, Arm: gain.Arms[(i+i/2)%2], Position: i, Status: gain.StatusOK, Value: 1000 +
			float64(7*i%5)}
		if l.Arm == gain.Perfect {
			l.Value *= 1 + won
		}
		c.Measurements = append(c.Measurements, l)
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
			{TokensPerRank: 8, ExpertMaxOverMean: 1.5, ExpertFloor: 1, RankMaxOverMean: 1, RankFloor: 1, ActiveExperts: 32,
				ActiveExpertsIdeal: 32},
		}}
}

func inputsOf(items ...source.Item) (inputs []Input) {
	for _, in := range items {
		inputs = append(inputs, Input{Item: in, Answer: answerOf(in)})
	}
	return inputs
}

func answerOf(in source.Item) answer.Answer {
	switch {
	case in.Campaign != nil:
		return answer.OfCampaign(in.Campaign.Result, in.Campaign.Run)
	case in.Trace != nil:
		return answer.OfTrace(in.Trace, "FILES")
	case in.Compared != nil:
		return answer.OfComparison(in.Compared, answer.Compared{})
	case in.Counts != nil:
		return answer.OfCounts(in.Counts, "FILES")
	case in.Place != nil:
		return answer.OfPlacement(in.Place, "")
	case in.Cache != nil:
		return answer.OfCache(in.Cache, in.Name)
	}
	return answer.Answer{}
}

func write(t *testing.T, inputs ...Input) (Page, string) {
	t.Helper()
	p := New("A <title> & more", []Fact{{"Report", "yesterday"}}, inputs...)
	var b bytes.Buffer
	require.NoError(t, p.Write(&b))
	checkPage(t, b.String())
	return p, b.String()
}

// page is a page of items, and its text with plain spaces and signs.
func page(t *testing.T, items ...source.Item) (Page, string) {
	t.Helper()
	p, doc := write(t, inputsOf(items...)...)
	return p, strings.NewReplacer("</span> <span>", " ", "\u00a0", " ", "&#43;", "+", "&#39;", "'", "&amp;",
		"&").Replace(doc)
}

var infinity, images = regexp.MustCompile(`\bInf\b`), regexp.MustCompile(`data:image[^"]*`)

// checkPage wants well-formed markup with nothing from outside, no script, one style that its policy
// names, and every figure described and every link's target there.
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
		for _, a := range start.Attr {
			switch image := start.Name.Local == "img"; a.Name.Local {
			case "id":
				if ids[a.Value] {
					t.Errorf("two elements have the id %q", a.Value)
				}
				ids[a.Value] = true
			case "href", "aria-labelledby":
				links = append(links, strings.TrimPrefix(a.Value, "#"))
			case "src":
				if drawing, ok := strings.CutPrefix(a.Value, "data:image/svg+xml;base64,"); !image || !ok {
					t.Errorf("the page refers to %.40q", a.Value)
				} else if svg, err := base64.StdEncoding.DecodeString(drawing); err != nil || infinity.Match(svg) ||
					bytes.Contains(svg, []byte("NaN")) {
					t.Errorf("a figure holds a NaN or an Inf, or is none: %v", err)
				}
			case "alt":
				if a.Value == "" {
					t.Error("a figure has no words")
				}
			}
		}
	}
	for _, l := range links {
		if !ids[l] {
			t.Errorf("nothing has the id %q", l)
		}
	}
	doc = images.ReplaceAllString(doc, "")
	if strings.Contains(doc, "://") || strings.Contains(doc, "NaN") || infinity.MatchString(doc) ||
		strings.Contains(doc, "ZgotmplZ") {
		t.Error("the page holds an address, a NaN, an Inf or something the template refused")
	}
}

func titles(p Page) (out []string) {
	for _, s := range p.Sections {
		out = append(out, s.ID)
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
	traces := gathered(t, "gptoss-ep4-loop")
	normal, perfect := traces[0].Trace, traces[1].Trace
	compared := diff.Compare(normal, perfect, gain.Builds{})
	compared.WithCampaign(campaign(0.2).Result, gain.Run{}, 0)
	inputs := []source.Item{{Name: "b", Trace: perfect}, {Name: "a", Trace: normal}, {Name: "c", Compared: &compared},
		{Name: "bench.json", Campaign: campaign(0.2)}, {Name: "cache", Cache: cache()}}
	p, doc := page(t, inputs...)
	if want := []string{"bench", "compare", "trace", "cache"}; !slices.Equal(titles(p), want) {
		t.Errorf("sections %v, want %v", titles(p), want)
	}
	if want := []string{"gain", "phase-time", "rank-layer-time", "expert-time"}; !slices.Equal(names(p), want) {
		t.Errorf("figures %v, want %v", names(p), want)
	}
	for i, c := range p.of(func(in source.Item) bool { return in.Campaign != nil })[0].Answer.Caveats {
		if !slices.ContainsFunc(p.Answer.Caveats, func(a answer.Caveat) bool { return a.String() == c.String() }) {
			t.Errorf("the page, which leads with the campaign's gain, lacks its caveat %d: %s", i, c)
		}
	}
	at := -1
	for _, want := range []string{ // in this order
		"<span>A &lt;title&gt; & more</span>",
		`<strong class="badge bad">imbalance significant</strong>`,
		`<h1 id="line">Balanced routing is 20.0 % faster; these traces predict `,
		"<dt>gain</dt>",
		"What did each pair gain?", "Under learned routing, ", "Under balanced routing, ",
		"yesterday",
	} {
		next := strings.Index(doc, want)
		if next <= at {
			t.Errorf("%q is at %d, after what was at %d", want, next, at)
		}
		at = next
	}
	swapped := slices.Clone(inputs)
	swapped[0], swapped[1] = swapped[1], swapped[0]
	if _, again := page(t, swapped...); again[strings.Index(again, "</h1>"):] != doc[strings.Index(doc, "</h1>"):] {
		t.Error("the order of the arms on the command line changed the page")
	}
}

// A section appears only when an input speaks to it, and the answer is by the strongest evidence. A
// trace of which nothing is defined gives a page, and no number; a refused campaign has no gain.
func TestSectionsFollowInputs(t *testing.T) {
	nan := router.Undefined()
	undefined := &trace.Trace{SchemaVersion: 1, Kind: "trace", Arm: "normal", Ranks: []trace.Rank{{Rank: 0}},
		Coverage: trace.Coverage{LaunchShare: nan, LayerShare: nan, ExpertShare: nan},
		Imbalance: []imbalance.Row{{Layer: 0, Level: "rank", Quantity: "time", MaxOverMean: nan, Imbalance: nan,
			Floor: nan, NullP95: nan, Worst: -1}},
		Cells: []trace.Cell{{Rank: 0, Step: 0, Layer: 0, Phase: trace.PhaseExperts, Sum: imbalance.Sum{TotalNS: 10}}}}
	invalid := campaign(0.2)
	invalid.Verdict = gain.Invalid
	for says, in := range map[string]source.Item{
		"Balanced routing is 5.0 % faster, below the 10 % threshold.":      {Name: "bench", Campaign: campaign(0.05)},
		"0 files are exact; 1 of 2 batch sizes are as balanced as can be.": {Name: "cache", Cache: cache()},
		"No answer: no load is recorded.":                                  {Name: "counts", Counts: &counts.Result{}},
		"No answer: imbalance needs two ranks":                             {Name: "trace", Trace: undefined},
		"hide kernels in":                                                  {Name: "trace", Trace: gathered(t, "gptoss-graph/graph-normal.sqlite")[0].Trace},
		`<strong class="badge bad">invalid</strong>`:                       {Name: "bench", Campaign: invalid},
	} {
		p, doc := page(t, in)
		if !slices.Equal(titles(p), []string{in.Name}) || !strings.Contains(doc, says) {
			t.Errorf("sections %v, and the page does not say %q", titles(p), says)
		}
		if in.Campaign == invalid && (strings.Contains(doc, "faster") || len(p.Figures()) > 0) {
			t.Error("the page of an invalid campaign tells a gain")
		}
	}
}

// Every table that has rows stands in the section of its kind, folded and cut.
func TestTables(t *testing.T) {
	p := inputsOf(source.Item{Name: "bench.json", Campaign: campaign(0.2)})
	type row struct {
		Status string
		N      int
	}
	rows := slices.Repeat([]row{{"pass", 12}, {"warn", 13}}, mostRows)
	const columns = "Status=status, N=n"
	type kernel struct {
		N           int
		Phase, Name string
	}
	p[0].Tables = []table.Table{table.Of("checks", "T<1>", rows, columns), table.Of("pairs", "T2", rows[:1], columns),
		table.Of("proof", "T4", rows[:0], columns),
		table.Of("kernels", "T3", []kernel{{12, "experts", "gemm"}}, "N=n, Phase=phase, Name:short=name")}
	_, doc := write(t, p...)
	for want, is := range map[string]bool{"<summary>T&lt;1&gt; (50 rows, 50 more left out)</summary>": true,
		"<summary>T2 (1 row)</summary>": true, "T4": false,
		`<td class="good">pass</td><td class="n">12</td>`:    true,
		`<td>gemm</td><td class="n">12</td><td>experts</td>`: true} {
		if strings.Contains(doc, want) != is {
			t.Errorf("%q: want %t", want, is)
		}
	}
}

var (
	tag     = regexp.MustCompile(`<[^>]*>`)
	entries = regexp.MustCompile(`<li><a href="#([\w-]+)">[^<]*(?:<i>([^<]*)</i>)?</a></li>`)
)

func gathered(t *testing.T, paths ...string) []source.Item {
	t.Helper()
	for i := range paths {
		paths[i] = "../../testdata/" + paths[i]
	}
	items, err := source.Gather(context.Background(), paths, nil,
		func([]string) (func(int64), func()) { return func(int64) {}, func() {} })
	require.NoError(t, err)
	return items
}

// Every page says what to do next, and the one number in its contents stands in the answer.
func TestContentsAndNextStep(t *testing.T) {
	for name, items := range map[string][]source.Item{
		"campaign, traces": gathered(t, "campaign-deepseek-ep4.json", "deepseek-ep4-ranks"),
		"inconclusive":     gathered(t, "field/results/vllm-qwen3-campaign.json"),
		"no answer":        gathered(t, "gptoss-graph/graph-normal.sqlite"),
		"comparison":       gathered(t, "gptoss-ep4-loop"),
		"counts":           gathered(t, "deepseek-ep4-ranks/counts-normal"),
		"placement":        gathered(t, "field/results/vllm-qwen3-place.json"),
		"cache":            {{Name: "cache", Cache: cache()}},
	} {
		p, doc := page(t, items...)
		contents := entries.FindAllStringSubmatch(doc, -1)
		if _, next, ok := strings.Cut(doc, "<h2>What to do next</h2>\n<ol>\n<li>"); !ok || next[0] == '<' || len(contents) < 2 ||
			name == "placement" && p.Key() != p.Answer.Numbers[0].Shown() { // not the load, which the line names, too
			t.Errorf("%s: the page does not say what to do next, or %q", name, p.Key())
		}
		_, answer, _ := strings.Cut(doc, ` id="answer"`)
		answer, _, _ = strings.Cut(answer, "</section>")
		for i, m := range contents {
			if i == 0 && !strings.Contains(tag.ReplaceAllString(answer, " "), m[2]) || i > 0 && (m[2] != "" ||
				!strings.Contains(doc, `<div class="body" id="`+m[1])) { // inside, so that a link opens the fold
				t.Errorf("%s: the contents say %q of %s", name, m[2], m[1])
			}
		}
	}
}

// What an unfinished campaign says so far is no verdict, wherever the page tells it.
func TestUnfinishedCampaignsHaveNoVerdict(t *testing.T) {
	for _, verdict := range []gain.Verdict{gain.Significant, gain.Inconclusive} {
		c := campaign(0.2)
		c.Verdict = verdict
		c.Run = gain.Run{Folder: "a/campaign", Pairs: 8, Left: 4}
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
		require.NoError(t, New("", nil, inputsOf(in)...).Write(io.Discard))
	})
}

// A name turns no line around, is no markup, and gives no secret away.
func TestPageOfHostileNames(t *testing.T) {
	bad := "a\u202eb <script>alert(1)</script> /?api_key=hunter2 sk-abc123def456"
	in := Input{Item: source.Item{Name: bad, Cache: cache()}, Notes: []string{bad},
		Tables: []table.Table{{Name: "balance", Title: bad, Columns: []table.Column{{Name: "x",
			Cells: []any{bad}}}}}}
	p := New(bad, []Fact{{"Report", bad}}, in)
	var b strings.Builder
	require.NoError(t, p.Write(&b))
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
	want := "default-src 'none'; img-src data:; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; "
	_, rest, _ = strings.Cut(head, `http-equiv="Content-Security-Policy" content="`)
	allowed, _, _ := strings.Cut(rest, `"`)
	if got := html.UnescapeString(allowed); !strings.HasPrefix(got, want) || strings.Contains(got, "unsafe") {
		t.Errorf("the policy is %q, want %q first", got, want)
	}
	if needs := regexp.MustCompile(
		`(?i)<[^>]*\s(?:style|on[a-z]+)=|<(?:script|link|iframe|object)\b`).FindAllString(doc, -1); len(needs) > 0 {
		t.Errorf("the page needs more than its policy allows: %q", needs[:min(len(needs), 3)])
	}
}
