package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/logits"
	"github.com/moebalance/moebalance/router/input"
)

// ErrUnknown is wrapped by ParseResult's refusal of something that is no result.
var ErrUnknown = errors.New("not a result of moebalance")

// Item is one input of a report: exactly one of the pointers is set. Name is what the
// report calls it, usually the file's base name.
type Item struct {
	Name     string
	Trace    *nsys.Trace
	Campaign *Campaign // judged, also while it runs
	Cache    *logits.Verification
	Counts   *Counts
	Compared *diff.Comparison
}

// readers decode each kind of result and name the schema version understood.
var readers = []struct {
	kind   string
	schema int
	decode func(*Item, []byte) error
}{
	{"trace", nsys.SchemaVersion, func(in *Item, b []byte) error { return into(&in.Trace, b) }},
	{"bench", gain.SchemaVersion, func(in *Item, b []byte) error { return into(&in.Campaign, b) }},
	{logits.VerificationKind, logits.VerificationSchema, func(in *Item, b []byte) error { return into(&in.Cache, b) }},
	{"counts", counts.SchemaVersion, func(in *Item, b []byte) error { return into(&in.Counts, b) }},
	{"compare", diff.SchemaVersion, func(in *Item, b []byte) error { return into(&in.Compared, b) }},
}

// ReadResult reads the JSON result of a verb from a file.
func ReadResult(path string) (Item, error) {
	text, err := os.ReadFile(path)
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
	}
	var kinds []string
	for _, k := range readers {
		kinds = append(kinds, k.kind)
	}
	unknown := &input.Error{File: name, Expected: "a JSON result of " + strings.Join(kinds, ", "), Err: ErrUnknown, Try: "write one with 'moebalance VERB --format json -o FILE'"}
	if err := json.Unmarshal(text, &head); err != nil {
		unknown.Found = err.Error()
		return in, unknown
	}
	for _, k := range readers {
		switch {
		case k.kind != head.Kind:
			continue
		case head.Schema != k.schema:
			return in, &input.Error{File: name, Expected: fmt.Sprintf("%s of schema_version %d", k.kind, k.schema), Found: strconv.Itoa(head.Schema), Err: ErrUnknown, Try: "write it again with this version"}
		}
		if err := k.decode(&in, text); err != nil {
			return in, &input.Error{File: name, Expected: "a result of " + k.kind, Err: err}
		}
		return in, nil
	}
	unknown.Found = fmt.Sprintf("kind %q", head.Kind)
	return in, unknown
}

func into[T any](at **T, b []byte) error {
	*at = new(T)
	return json.Unmarshal(b, *at)
}

// Results counts the pointers that are set.
func (in Item) Results() (n int) {
	for _, set := range []bool{in.Trace != nil, in.Campaign != nil, in.Cache != nil, in.Counts != nil, in.Compared != nil} {
		if set {
			n++
		}
	}
	return n
}
