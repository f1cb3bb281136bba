package source

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/moebalance/moebalance/compare/bench"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/place"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/logits"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/shown"
)

// Campaign is the JSON of bench: the judged campaign and its state.
type Campaign struct {
	gain.Result
	Version string   `json:"version"` // of the program that judged it
	Run     gain.Run `json:"campaign"`
	Notes   []string `json:"-"` // what reading its reports found
}

// Judge judges the launches that a campaign has so far.
func Judge(c *bench.Campaign) Campaign {
	recorded := bench.Recorded(c)
	return Campaign{
		Result: gain.Judge(recorded),
		Run: gain.Run{
			Folder: c.Folder, Treatment: c.Spec.Treatment.Name, Seed: c.Spec.Design.Seed,
			Server: len(c.Spec.Command.Server) > 0, Again: launch.Quote(shown.Mask(c.Spec.Typed)), Pairs: c.Spec.Design.Pairs,
			Launches: c.Finished(), Left: c.Left(), Ranks: recorded.Ranks,
			Created: c.Created, GPUs: gpus(c),
		},
	}
}

// gpus names the GPUs that nvidia-smi showed beside the last launch that recorded some, by the first of them:
// "4 × NVIDIA H200".
func gpus(c *bench.Campaign) (text string) {
	for _, l := range c.Launches {
		for _, a := range l.Attempts {
			if len(a.GPUs) > 0 {
				text = fmt.Sprintf("%d × %s", len(a.GPUs), a.GPUs[0].Name)
			}
		}
	}
	return text
}

// Item is one input of a report: exactly one of the pointers is set. Name is what the
// report calls it, usually the file's base name.
type Item struct {
	Name     string
	Next     []Step   // what the JSON of a verb says to do next
	Given    []string // the files that it was read from, of traces and counts; none of a verb's JSON
	Counted  []string // of a trace, the counts beside it, one file or none
	Trace    *trace.Trace
	Campaign *Campaign // judged, also while it runs
	Cache    *logits.Verification
	Counts   *counts.Result
	Compared *diff.Comparison
	Place    *place.Result
	record   *counts.Record // of Counts
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
		return Item{Name: filepath.Base(path), Campaign: new(Judge(c))}, c.Close()
	}
	text, err := input.ReadFile(path, maxResult)
	if err == nil {
		in, err = ParseResult(filepath.Base(path), text)
	}
	if err == nil && in.Campaign != nil && in.Campaign.Run.Left == 0 {
		in.Campaign.Run.Folder = path // the recorded folder is another machine's
	}
	return in, err
}

// ReadCampaign is the campaign in a folder, judged, or the JSON result of bench.
func ReadCampaign(path string) (Campaign, error) {
	in, err := ReadResult(path)
	if err == nil && in.Campaign != nil {
		return *in.Campaign, nil
	}
	return Campaign{}, Meant(path, cmp.Or(err, ErrUsage), Campaigns)
}

// ParseResult takes the JSON result of a verb and recognizes it by its kind. Errors are of type *input.Error.
func ParseResult(name string, text []byte) (in Item, err error) {
	var head struct {
		Kind   string `json:"kind"`
		Schema int    `json:"schema_version"`
		Answer struct{ Next []Step }
	}
	headErr := json.Unmarshal(text, &head)
	if !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		headErr = errors.New(input.Beginning(text))
	}
	kind, known := map[string]struct {
		schema int    // the newest that is understood
		into   any    // where the result is stored
		holds  string // the field with what the verb found, which is never empty
	}{
		"trace": {trace.SchemaVersion, &in.Trace, "Exports"}, "bench": {gain.SchemaVersion, &in.Campaign, "Verdict"},
		logits.VerificationKind: {logits.VerificationSchema, &in.Cache, "Entries"},
		"counts":                {counts.ResultSchema, &in.Counts, "Records"},
		"compare":               {diff.SchemaVersion, &in.Compared, "Verdict"},
		"place":                 {place.SchemaVersion, &in.Place, "Placements"},
	}[head.Kind]
	switch {
	case headErr != nil || !known:
		return in, &input.Error{File: name, Expected: "a campaign folder, captures, expert counts, benchmark reports, or " +
			"the JSON result of trace, bench, logits verify, counts, compare, place",
			Err: cmp.Or(headErr, errors.New(strings.TrimSuffix(fmt.Sprintf("other JSON: kind %q", head.Kind), `: kind ""`))),
			Try: "write a result with 'moebalance VERB -o FILE.json'"}
	case head.Schema < 1 || head.Schema > kind.schema:
		return in, &input.Error{File: name, Position: "schema_version", Expected: fmt.Sprint("at most ", kind.schema),
			Found: fmt.Sprint(head.Schema), Try: "read it with a newer version, or write it again with this one"}
	}
	in.Name, in.Next, err = name, head.Answer.Next, json.Unmarshal(text, kind.into)
	if err == nil && in.Campaign != nil {
		err = in.Campaign.Upgrade()
	}
	if err != nil {
		return in, &input.Error{File: name, Expected: "a result of " + head.Kind, Err: err}
	}
	broken := ""
	switch c := in.Campaign; {
	case reflect.ValueOf(kind.into).Elem().Elem().FieldByName(kind.holds).Len() == 0:
		broken = strings.ToLower(kind.holds)
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
