package page

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/logits"
	"github.com/moebalance/moebalance/router/input"
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

// Read takes the JSON result of a verb and recognizes it by its kind. Errors are of
// type *input.Error; that about anything else wraps ErrUnknown.
func Read(name string, r io.Reader) (Input, error) {
	in := Input{Name: name}
	b, err := io.ReadAll(r)
	if err != nil {
		return in, &input.Error{File: name, Err: err}
	}
	var head struct {
		Kind   string `json:"kind"`
		Schema int    `json:"schema_version"`
	}
	var kinds []string
	for _, k := range readers {
		kinds = append(kinds, k.kind)
	}
	unknown := &input.Error{File: name, Expected: "a JSON result of " + strings.Join(kinds, ", "), Err: ErrUnknown, Try: "write one with 'moebalance VERB --format json -o FILE'"}
	if err := json.Unmarshal(b, &head); err != nil {
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
		if err := k.decode(&in, b); err != nil {
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

// results counts the pointers that are set.
func (in Input) results() (n int) {
	for _, set := range []bool{in.Trace != nil, in.Campaign != nil, in.Cache != nil, in.Counts != nil, in.Compared != nil} {
		if set {
			n++
		}
	}
	return n
}
