package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/bench"
	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/place"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/logits"
	"github.com/moebalance/moebalance/router/input"
)

// Item is one input of a report: exactly one of the pointers is set. Name is what the
// report calls it, usually the file's base name.
type Item struct {
	Name     string
	Next     []Step   // what the JSON of a verb says to do next
	Given    []string // the files that it was read from, of traces and counts; none of a verb's JSON
	Trace    *trace.Trace
	Campaign *Campaign // judged, also while it runs
	Cache    *logits.Verification
	Counts   *counts.Result
	Compared *diff.Comparison
	Place    *place.Result
}

// Step is something to do next: in words, and the command as it is typed.
type Step struct{ Text, Command string }

// maxResult is the most bytes of a result that is read.
const maxResult = 1 << 30

// ReadResult reads the campaign in a folder, judged, or the JSON result of a verb.
func ReadResult(path string) (in Item, err error) {
	if bench.IsCampaign(path) {
		c, err := bench.Open(path)
		if err != nil {
			return in, err
		}
		judged := Judge(c)
		return Item{Name: filepath.Base(path), Campaign: &judged}, c.Close()
	}
	text, err := input.ReadFile(path, maxResult)
	if err != nil {
		return in, err
	}
	in, err = ParseResult(filepath.Base(path), text)
	if err == nil && in.Campaign != nil && in.Campaign.Run.Left == 0 {
		in.Campaign.Run.Folder = path // the recorded folder is another machine's
	}
	return in, err
}

// ReadCampaign is the campaign in a folder, judged, or the JSON result of bench.
func ReadCampaign(path string) (Campaign, error) {
	in, err := ReadResult(path)
	if err == nil && in.Campaign == nil {
		err = &input.Error{File: path, Found: "the result of another verb"}
	}
	if wrong, ok := errors.AsType[*input.Error](err); ok && wrong.Position == "" {
		wrong.Expected = "a campaign folder or the JSON result of bench"
	}
	if err != nil {
		return Campaign{}, err
	}
	return *in.Campaign, nil
}

// result is a kind of result: the newest version that is understood, where it is read to, and the field that holds
// what the verb found, which is never empty.
type result struct {
	kind   string
	schema int
	into   any
	holds  string
}

func (in *Item) results() []result {
	return []result{
		{"trace", trace.SchemaVersion, &in.Trace, "Exports"}, {"bench", gain.SchemaVersion, &in.Campaign, "Verdict"},
		{logits.VerificationKind, logits.VerificationSchema, &in.Cache, "Entries"},
		{"counts", counts.ResultSchema, &in.Counts, "Records"}, {"compare", diff.SchemaVersion, &in.Compared, "Verdict"},
		{"place", place.SchemaVersion, &in.Place, "Placements"},
	}
}

// ParseResult takes the JSON result of a verb and recognizes it by its kind. Errors are of type *input.Error.
func ParseResult(name string, text []byte) (in Item, err error) {
	var head struct {
		Kind   string `json:"kind"`
		Schema int    `json:"schema_version"`
		Answer struct{ Next []Step }
	}
	in.Name = name
	headErr := json.Unmarshal(text, &head)
	kinds := in.results()
	at := slices.IndexFunc(kinds, func(r result) bool { return r.kind == head.Kind })
	switch {
	case headErr != nil:
		return in, unknown(name, "", headErr)
	case head.Kind == "":
		return in, unknown(name, "JSON without a kind", nil)
	case at < 0:
		return in, unknown(name, fmt.Sprintf("kind %q", head.Kind), nil)
	case head.Schema < 1 || head.Schema > kinds[at].schema:
		return in, &input.Error{File: name, Position: "schema_version", Expected: fmt.Sprint("at most ", kinds[at].schema),
			Found: fmt.Sprint(head.Schema), Try: "read it with a newer version, or write it again with this one"}
	}
	in.Next, err = head.Answer.Next, json.Unmarshal(text, kinds[at].into)
	if err == nil && in.Campaign != nil {
		err = in.Campaign.Upgrade()
	}
	if err != nil {
		return in, &input.Error{File: name, Expected: "a result of " + head.Kind, Err: err}
	}
	broken := ""
	switch c := in.Campaign; {
	case reflect.ValueOf(kinds[at].into).Elem().Elem().FieldByName(kinds[at].holds).Len() == 0:
		broken = strings.ToLower(kinds[at].holds)
	case c != nil && len(c.Main()) == 0:
		broken = "comparisons"
	case c != nil && (c.Gain.N == 0 && c.Gain.Estimate.Defined() || c.Gain.Estimate < c.Gain.Low ||
		c.Gain.Estimate > c.Gain.High): // it is outside its interval
		broken = "gain"
	}
	if broken != "" {
		err = &input.Error{File: name, Position: broken, Expected: "what the verb wrote",
			Found: "none, or a changed one", Try: "write the result again"}
	}
	return in, err
}

// unknown is the error about what is no result.
func unknown(name, found string, err error) error {
	var kinds []string
	for _, r := range new(Item).results() {
		kinds = append(kinds, r.kind)
	}
	return &input.Error{File: name, Expected: "a campaign folder, captures, expert counts, benchmark reports, or " +
		"the JSON result of " + strings.Join(kinds, ", "), Found: found, Err: err,
		Try: "write a result with 'moebalance VERB --format json -o FILE'"}
}
