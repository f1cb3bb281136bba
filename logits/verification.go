package logits

import (
	"errors"
	"fmt"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/plan"
	"github.com/moebalance/moebalance/router/quantity"
)

// Verification is what a scan found in a folder of entries, and the JSON of 'logits
// verify'.
type Verification struct {
	SchemaVersion int            `json:"schema_version"`
	Kind          string         `json:"kind"`    // always VerificationKind
	Balance       []BatchBalance `json:"balance"` // by model, plan, element type, layer and tokens
	Entries       []EntryStatus  `json:"entries"` // by name, the missing ones last
}

// The kind and version of Verification's JSON.
const (
	VerificationKind   = "logits verify"
	VerificationSchema = 1
)

// AtFloor is the number of batch sizes that are as even as can be.
func (v Verification) AtFloor() (n int) {
	for _, b := range v.Balance {
		if b.AtFloor {
			n++
		}
	}
	return n
}

// BatchBalance is the balance of one batch size over all ranks together; its numbers
// are undefined while entries are missing or bad.
type BatchBalance struct {
	Model  string        `json:"model"`
	Method router.Method `json:"method"`
	Plan   string        `json:"plan"` // with its version
	Mode   router.Mode   `json:"mode"`
	Layer  int           `json:"layer"`
	DType  DType         `json:"dtype"`
	Ranks  int           `json:"ranks"`
	// TokensPerRank is null for periodic entries. Their numbers are those of one
	// whole table; Certificate has those of every number of tokens.
	TokensPerRank      router.OptInt `json:"tokens_per_rank"`
	ExpertMaxOverMean  router.Number `json:"expert_max_over_mean"`
	ExpertFloor        router.Number `json:"expert_floor"`
	RankMaxOverMean    router.Number `json:"rank_max_over_mean"`
	RankFloor          router.Number `json:"rank_floor"`
	ActiveExperts      router.Number `json:"active_experts"`
	ActiveExpertsIdeal int           `json:"active_experts_ideal"`
	// AtFloor reports that ranks and copies of experts are as even as whole slots
	// can be, as no slots at all are, and that no rank is missing. With replicas
	// logical experts do not count: even ranks give an expert more slots the more
	// copies it has. For periodic entries it holds for every number of tokens, and
	// of active experts too.
	AtFloor bool `json:"at_floor"`
	// Certificate is null for entries of one batch size, and while ranks are missing.
	Certificate *plan.Proof `json:"certificate"`

	Projected    bool  `json:"-"` // one of the good entries is
	MissingRanks []int `json:"-"` // ranks without a good entry
	Entries      int   `json:"-"` // that are there
	Bytes        int64 `json:"-"` // of them
}

// EntryStatus is what a scan found of one entry. What its file would say is null
// where the file cannot be read.
type EntryStatus struct {
	Path          string         `json:"path"`
	Model         *string        `json:"model"`
	Method        *router.Method `json:"method"`
	Experts       *int           `json:"experts"`
	TopK          *int           `json:"top_k"`
	Ranks         *int           `json:"ranks"`
	Rank          *int           `json:"rank"`
	TokensPerRank *int           `json:"tokens_per_rank"` // null in a periodic entry, which has the next two
	Rows          *int           `json:"rows"`
	Period        *int           `json:"period"`
	Layer         *int           `json:"layer"`
	DType         *DType         `json:"dtype"`
	Plan          *string        `json:"plan"`
	Seed          *uint64        `json:"seed"` // of a random plan
	Mode          *router.Mode   `json:"mode"`
	Layout        *string        `json:"layout"`
	Scale         *float32       `json:"scale"`
	BiasSHA256    *string        `json:"bias_sha256"`
	Status        string         `json:"status"` // exact, projected, or "failed: " and why

	Bytes int64 `json:"-"`
	Err   error `json:"-"` // why the entry is not what it says, or not there
}

// ErrMissing is wrapped by the errors of entries that a scan expected.
var ErrMissing = errors.New("entry is missing")

// describe takes over what the entry's file says.
func (e *EntryStatus) describe(r Record) {
	s := r.Spec
	// Copies: pointers into the spec would keep the layout of every entry.
	e.Model, e.Method, e.Experts, e.TopK = new(s.Model), new(s.Gate.Method), new(s.Gate.Shape.Experts),
		new(s.Gate.Shape.TopK)
	e.Ranks, e.Rank, e.Layer = new(s.Layout.Ranks()), new(r.Rank), new(s.Layer)
	if r.Tokens == AnyTokens {
		e.Rows, e.Period = new(r.Rows), new(r.Period)
	} else {
		e.TokensPerRank = new(r.Tokens)
	}
	e.DType, e.Plan, e.Seed = new(s.DType), new(r.PlanName), new(s.Seed)
	e.Mode, e.Layout, e.Scale, e.BiasSHA256 = new(s.Mode), new(s.text.layout), new(s.Gate.Scale), new(s.text.bias)
	e.Status = r.Feasibility.Status()
}

func (e *EntryStatus) fail(err error) {
	e.Err, e.Status = err, "failed: "+fault(err)
}

// Fault is what is wrong with an entry, without its path; empty for a good one.
func (e EntryStatus) Fault() string {
	if e.Err == nil {
		return ""
	}
	return fault(e.Err)
}

// fault is an error about a file without the file's name, where it can be told.
func fault(err error) string {
	if about := new(input.Error); errors.As(err, &about) {
		return about.Fault()
	}
	return err.Error()
}

// Err is nil when every entry is what it says, and names the first that is not.
func (v Verification) Err() error {
	failed, first := 0, ""
	for _, e := range v.Entries {
		if e.Err == nil {
			continue
		}
		if failed++; failed == 1 {
			first = fmt.Sprintf("%q: %s", e.Path, e.Fault())
		}
	}
	if failed == 0 {
		return nil
	}
	return fmt.Errorf("logits verify: %d of %s failed; run 'moebalance logits generate' again to replace damaged "+
		"entries and add missing ones, and remove other files; the first: %s", failed, quantity.Count(len(v.Entries),
		"entry"), first)
}
