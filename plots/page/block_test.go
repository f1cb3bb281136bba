package page

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/place"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/table"
)

// heads are the headings of a table block, with what it says once in brackets.
func heads(b block) string {
	var names []string
	for _, c := range b.Table.Columns {
		names = append(names, c.Name)
	}
	return strings.Join(names, " ") + " [" + b.Constant + "]"
}

// A table says once what all rows share, leaves out what no row knows, gives up its minor columns
// for room, and stands upright where one row is too wide. Two measured values may agree by chance,
// and one row has no constants.
func TestTablesWithoutConstants(t *testing.T) {
	columns := []table.Column{{Name: "arm"}, {Name: "note"}, {Name: "low", Kind: table.Percent},
		{Name: "high", Kind: table.Percent}, {Name: "pairs", Kind: table.Count}}
	none := router.Undefined()
	for want, rows := range map[string][][]any{
		"arm low high pairs []":  {{"a", "", 0.1, 0.2, 6}},
		"arm low high [pairs 6]": {{"a", "", 0.1, 0.2, 6}, {"b", "", 0.15, 0.2, 6}},
		"arm low [high 20.0 % · pairs 6]": {{"a", "", 0.1, 0.2, 6}, {"b", "", 0.15, 0.2, 6},
			{"c", "", 0.16, 0.2, 6}},
		"arm note low [pairs 6]":     {{"a", "", 0.1, none, 6}, {"b", "late", 0.15, none, 6}},
		"arm note low high pairs []": {{"a", "", none, none, 6}, {"b", "x", 0.15, 0.2, 5}},
	} {
		if got := heads(tableBlock(table.Table{Columns: columns, Rows: rows}, false)); got != want {
			t.Errorf("%v: %q, want %q", rows, got, want)
		}
	}
	wide := table.Table{}
	var row, other []any
	for i := range mostColumns + 2 {
		wide.Columns = append(wide.Columns, table.Column{Name: string(rune('a' + i)), Kind: table.Count})
		row, other = append(row, i), append(other, i+1)
	}
	wide.Rows = [][]any{row, other}
	if got, want := heads(tableBlock(wide.Least("c", "a", "b"), false)), "b d e f g h i j k []"; got != want {
		t.Errorf("of %d columns %q are left, want %q", len(row), got, want)
	}
	wide.Rows = wide.Rows[:1]
	if got := tableBlock(wide, false); heads(got) != "quantity value []" || len(got.Table.Rows) != len(row) {
		t.Errorf("a row of %d columns has the headings %q and %d rows", len(row), heads(got), len(got.Table.Rows))
	}
}

var (
	tag     = regexp.MustCompile(`<[^>]*>`)
	entries = regexp.MustCompile(`<li><a href="#([\w-]+)">[^<]*(?:<i>([^<]*)</i>)?</a></li>`)
)

// everyKind is one result of each kind, and the sides of a comparison that is refused.
func everyKind(t *testing.T) map[string][]source.Item {
	t.Helper()
	normal, perfect := captures(t, "deepseek-ep4-ranks/normal.*.sqlite"),
		captures(t, "deepseek-ep4-ranks/perfect.*.sqlite")
	gathered := func(paths ...string) []source.Item {
		items, err := source.Gather(context.Background(), paths, source.GatherOptions{Threshold: 0.1,
			Counts:   map[string]string{},
			Progress: func([]string) (func(int64), func()) { return func(int64) {}, func() {} }})
		if err != nil {
			t.Fatal(err)
		}
		return items
	}
	const data = "../../testdata/"
	dose := gathered(data + "field/results/vllm-two-h100/campaign.json")
	dose[0].Campaign.Command = "" // which holds an address
	invalid := campaign(0.2)
	invalid.Verdict = gain.Invalid
	return map[string][]source.Item{
		"campaign":         {{Name: "c", Campaign: campaign(0.2)}},
		"no gain":          {{Name: "c", Campaign: campaign(0)}},
		"invalid":          {{Name: "c", Campaign: invalid}},
		"campaign, traces": gathered(data+"campaign-deepseek-ep4.json", data+"deepseek-ep4-ranks"),
		"dose":             dose,
		"inconclusive":     gathered(data + "field/results/vllm-qwen3-campaign.json"),
		"uneven trace":     {{Name: "n", Trace: normal}},
		"even trace":       {{Name: "p", Trace: perfect}},
		"kinds":            {{Name: "k", Trace: captures(t, "vllm/qwen3-normal.*")}},
		"no answer":        {{Name: "g", Trace: captures(t, "gptoss-graph/graph-normal.sqlite")}},
		"comparison":       gathered(data + "gptoss-ep4-loop"),
		"counts":           gathered(data + "deepseek-ep4-ranks/counts-normal"),
		"even counts":      gathered(data + "deepseek-ep4-ranks/counts-perfect"),
		"placement":        gathered(data + "field/results/vllm-qwen3-place.json"),
		"cache":            {{Name: "cache", Cache: cache()}},
	}
}

// Every page says what to do next, and every number in its contents stands in the section that
// it points to.
func TestContentsAndNextStep(t *testing.T) {
	for name, items := range everyKind(t) {
		_, doc := page(t, items...)
		if _, next, ok := strings.Cut(doc, "<h2>What to do next</h2>\n<ol>\n<li>"); !ok || next[0] == '<' {
			t.Errorf("%s: the page does not say what to do next", name)
		}
		sections := entries.FindAllStringSubmatch(doc, -1)
		if len(sections) < 2 {
			t.Errorf("%s: %d sections", name, len(sections))
		}
		for _, m := range sections {
			_, section, ok := strings.Cut(doc, ` id="`+m[1]+`"`)
			end, _, _ := strings.Cut(section, "</section>")
			if m[1] != "answer" { // a fold shows its number before it is opened
				end, _, _ = strings.Cut(section, "</summary>")
			}
			if !ok || !strings.Contains(tag.ReplaceAllString(end, " "), m[2]) {
				t.Errorf("%s: the contents say %q of %s, which does not", name, m[2], m[1])
			}
		}
	}
}

// A rebalancing over time, read back from its JSON, says how to set the engine.
func TestRebalancingSaysHow(t *testing.T) {
	var r place.Result
	text := `{"kind":"place","schema_version":1,"placements":[{"ranks":4,"verdict":"worth a trial"}],
		"rebalance":{"windows":3,"verdict":"worth a trial","ways":[{"way":"never","max_over_mean":1.5},
		{"way":"once","max_over_mean":1.1,"chosen":true,"rebalances":1}],"settings":[{"way":"once"},{"way":"once"}]}}`
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatal(err)
	}
	if _, doc := page(t, source.Item{Name: "r", Place: &r}); !strings.Contains(doc, "--table settings COUNTS") {
		t.Error("the page does not say how to set an engine's load balancer")
	}
	r.Rebalance.Verdict = place.NotNow
	if _, doc := page(t, source.Item{Name: "r", Place: &r}); strings.Contains(doc, "--table settings COUNTS") ||
		!strings.Contains(doc, "Keep the running placement") {
		t.Error("the page says how to set a load balancer that would not pay")
	}
}

// Caveats of one code are one label, with all of their sentences.
func TestChips(t *testing.T) {
	p, _ := page(t, everyKind(t)["dose"]...)
	var labels []string
	for _, c := range p.programs[0].Chips() {
		labels = append(labels, c.Label)
		if len(c.Texts) > 1 != strings.HasSuffix(c.Label, ")") {
			t.Errorf("%q has %d sentences", c.Label, len(c.Texts))
		}
	}
	want := "▲ segments far from their median (3), ▲ balance slows some load, ? same files: not checked, " +
		"? one server: not checked, ? independent pairs: not checked"
	if got := strings.Join(labels, ", "); got != want {
		t.Errorf("labels %q, want %q", got, want)
	}
}

// Of many records of expert counts, the one with the most uneven load leads and is drawn.
func TestManyRecordsOfCounts(t *testing.T) {
	even, uneven := everyKind(t)["even counts"], everyKind(t)["counts"]
	p, doc := page(t, slices.Concat(even, even, even, uneven)...)
	if want := "Rank 2 gets 1.85 × the mean load"; !strings.HasPrefix(p.programs[0].Answer.Line, want) {
		t.Errorf("the page says %q, want %q", p.programs[0].Answer.Line, want)
	}
	if !strings.Contains(doc, "layer 0 is the most uneven, 1.85 × the mean</h2>") ||
		strings.Contains(doc, "even in every layer") {
		t.Error("the figures are not of the record that leads")
	}
}
