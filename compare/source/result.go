package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/place"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/logits"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/quantity"
)

// ErrUnknown is wrapped by ParseResult's refusal of something that is no result.
var ErrUnknown = errors.New("not a result of moebalance")

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

// ReadResult reads the JSON result of a verb from a file.
func ReadResult(path string) (Item, error) {
	text, err := input.ReadFile(path, maxResult)
	if err != nil {
		return Item{}, err
	}
	return ParseResult(filepath.Base(path), text)
}

// ParseResult takes the JSON result of a verb and recognizes it by its kind. Errors
// are of type *input.Error; that about anything else wraps ErrUnknown.
func ParseResult(name string, text []byte) (Item, error) {
	in := Item{Name: name}
	var head struct {
		Kind   string `json:"kind"`
		Schema int    `json:"schema_version"`
		Answer struct{ Next []Step }
	}
	results := []struct {
		kind   string
		schema int // newest understood; results of all earlier ones still read
		into   any
	}{
		{"trace", trace.SchemaVersion, &in.Trace}, {"bench", gain.SchemaVersion, &in.Campaign},
		{logits.VerificationKind, logits.VerificationSchema, &in.Cache},
		{"counts", counts.ResultSchema, &in.Counts}, {"compare", diff.SchemaVersion, &in.Compared},
		{"place", place.SchemaVersion, &in.Place},
	}
	var kinds []string
	for _, r := range results {
		kinds = append(kinds, r.kind)
	}
	unknown := &input.Error{File: name, Expected: "a campaign folder, captures, expert counts, benchmark reports, or " +
		"the JSON result of " + strings.Join(kinds, ", "), Err: ErrUnknown,
		Try: "write a result with 'moebalance VERB --format json -o FILE'"}
	if err := json.Unmarshal(text, &head); err != nil {
		unknown.Err = notJSON{err}
		return in, unknown
	}
	for _, r := range results {
		switch {
		case r.kind != head.Kind:
			continue
		case head.Schema < 1 || head.Schema > r.schema:
			return in, &input.Error{File: name, Position: "schema_version", Expected: "at most " +
				strconv.Itoa(r.schema), Found: strconv.Itoa(head.Schema),
				Try: "read it with a newer version, or write it again with this one"}
		}
		if err := json.Unmarshal(text, r.into); err != nil {
			return in, &input.Error{File: name, Expected: "a result of " + r.kind, Err: err}
		}
		in.Next = head.Answer.Next
		if in.Campaign != nil {
			if err := in.Campaign.Upgrade(text); err != nil {
				return in, &input.Error{File: name, Expected: "a result of bench", Err: err}
			}
			in.Campaign.askAgain()
		}
		if c := in.Campaign; c != nil && (c.Gain.Estimate < c.Gain.Low || c.Gain.Estimate > c.Gain.High) {
			return in, &input.Error{File: name, Position: "gain", Expected: "an estimate within its interval, " +
				quantity.Percent(c.Gain.Low) + " to " + quantity.Percent(c.Gain.High),
				Found: quantity.Percent(c.Gain.Estimate), Try: "write it again with 'moebalance bench --resume'"}
		}
		if lacks := in.lacks(); lacks != "" {
			return in, &input.Error{File: name, Position: lacks, Expected: "at least one", Found: "none",
				Try: "write the result again"}
		}
		return in, nil
	}
	if unknown.Found = fmt.Sprintf("kind %q", head.Kind); head.Kind == "" {
		unknown.Found = "JSON without a kind"
	}
	return in, unknown
}

// lacks names the key that a result of its kind always has and this one lacks; empty where none is.
func (in Item) lacks() string {
	switch {
	case in.Place != nil && len(in.Place.Placements) == 0:
		return "placements"
	case in.Campaign != nil && len(in.Campaign.Main()) == 0:
		return "comparisons"
	case in.Campaign != nil && in.Campaign.Verdict == "":
		return "verdict"
	case in.Campaign != nil && in.Campaign.Gain.N == 0 && in.Campaign.Gain.Estimate.Defined():
		return "gain"
	}
	return ""
}

// notJSON is the fault of a text that is no JSON, and so no result.
type notJSON struct{ error }

func (notJSON) Is(err error) bool { return err == ErrUnknown }

// Results counts the pointers that are set.
func (in Item) Results() (n int) {
	for _, set := range []bool{in.Trace != nil, in.Campaign != nil, in.Cache != nil, in.Counts != nil,
		in.Compared != nil, in.Place != nil} {
		if set {
			n++
		}
	}
	return n
}
