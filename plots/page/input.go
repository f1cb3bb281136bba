package page

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/logits"
)

// ErrUnknown is wrapped by Read's refusal of something that is no result.
var ErrUnknown = errors.New("not a result of moebalance")

// Input is one result the page is built from: exactly one of the pointers is
// set. Name is how the page calls it, usually the file's base name.
type Input struct {
	Name     string
	Trace    *nsys.Trace
	Campaign *Campaign
	Cache    *logits.Verification
	Counts   *Counts
	Compared *diff.Comparison
}

// readers decode each kind of result and name the schema version understood.
var readers = []struct {
	kind   string
	schema int
	decode func(*Input, []byte) error
}{
	{"trace", nsys.SchemaVersion, func(in *Input, b []byte) error { return into(&in.Trace, b) }},
	{"bench", gain.SchemaVersion, func(in *Input, b []byte) error { return into(&in.Campaign, b) }},
	{logits.VerificationKind, logits.VerificationSchema, func(in *Input, b []byte) error { return into(&in.Cache, b) }},
	{"counts", counts.SchemaVersion, func(in *Input, b []byte) error { return into(&in.Counts, b) }},
	{"compare", diff.SchemaVersion, func(in *Input, b []byte) error { return into(&in.Compared, b) }},
}

// Read takes the JSON result of a verb and recognises it by its kind. Anything
// else is an error that wraps ErrUnknown and says what was expected.
func Read(name string, r io.Reader) (Input, error) {
	in := Input{Name: name}
	b, err := io.ReadAll(r)
	if err != nil {
		return in, fmt.Errorf("reading %s: %w", name, err)
	}
	var head struct {
		Kind   string `json:"kind"`
		Schema int    `json:"schema_version"`
	}
	var kinds []string
	for _, k := range readers {
		kinds = append(kinds, k.kind)
	}
	want := "want the JSON that 'moebalance VERB --format json -o FILE' writes, of kind " + strings.Join(kinds, ", ")
	if err := json.Unmarshal(b, &head); err != nil {
		return in, fmt.Errorf("reading %s: %w: %s; %w", name, ErrUnknown, want, err)
	}
	for _, k := range readers {
		if k.kind != head.Kind {
			continue
		}
		if head.Schema != k.schema {
			return in, fmt.Errorf("reading %s: %w: %s of schema version %d, want %d; make it again with this version", name, ErrUnknown, k.kind, head.Schema, k.schema)
		}
		if err := k.decode(&in, b); err != nil {
			return in, fmt.Errorf("reading %s as a %s result: %w", name, k.kind, err)
		}
		return in, nil
	}
	return in, fmt.Errorf("reading %s: %w: %s; found kind %q", name, ErrUnknown, want, head.Kind)
}

func into[T any](at **T, b []byte) error {
	*at = new(T)
	return json.Unmarshal(b, *at)
}

// results counts the pointers that are set.
func (in Input) results() (n int) {
	for _, set := range []bool{in.Trace != nil, in.Campaign != nil, in.Cache != nil, in.Counts != nil, in.Compared != nil} {
		if set {
			n++
		}
	}
	return n
}
