package logits

import (
	"fmt"
	"strings"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/plan"
	"github.com/moebalance/moebalance/router/quantity"
)

// Verification is what a scan found in a cache, and the JSON of 'logits verify'.
type Verification struct {
	SchemaVersion int            `json:"schema_version"`
	Kind          string         `json:"kind"`    // always VerificationKind
	Balance       []BatchBalance `json:"balance"` // by plan and tokens
	Entries       []EntryStatus  `json:"entries"` // foreign files first, then by plan, tokens and rank
}

// The kind and version of Verification's JSON.
const (
	VerificationKind   = "logits verify"
	VerificationSchema = 1
)

// AtFloor is how many batch sizes of balanced plans there are, and how many of them are as
// even as can be.
func (v Verification) AtFloor() (at, of int) {
	for _, b := range v.Balance {
		if b.Drawn {
			continue
		}
		of++
		if b.AtFloor {
			at++
		}
	}
	return at, of
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
	// TokensPerRank is null for periodic entries. Their numbers are for one
	// whole table; Certificate covers every number of tokens.
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
	Drawn   bool `json:"drawn"` // its plan is not meant to be even
	// Certificate is null for entries of one batch size, for drawn ones, and while ranks
	// are missing.
	Certificate *plan.Proof `json:"certificate"`

	Projected    bool  `json:"-"`       // one of the good entries is
	MissingRanks []int `json:"-"`       // ranks without a good entry
	Entries      int   `json:"entries"` // that are there
	Bytes        int64 `json:"bytes"`   // of the entries
}

// EntryStatus is what a scan found of one entry. Of a file that is none it is the path alone.
type EntryStatus struct {
	Path          string        `json:"path"`
	Model         string        `json:"model"`
	Method        router.Method `json:"method"`
	Experts       int           `json:"experts"`
	TopK          int           `json:"top_k"`
	Ranks         int           `json:"ranks"`
	Rank          router.OptInt `json:"rank"`
	TokensPerRank router.OptInt `json:"tokens_per_rank"` // null in a periodic entry, which has the next one
	Extent        *plan.Extent  `json:"table"`
	DType         DType         `json:"dtype"`
	Plan          string        `json:"plan"`
	Status        string        `json:"status"` // exact, projected, or "failed: " and why
}

const failedPrefix = "failed: "

// Fault is what is wrong with an entry, without its path; empty for a good one.
func (e EntryStatus) Fault() string {
	fault, bad := strings.CutPrefix(e.Status, failedPrefix)
	if !bad {
		return ""
	}
	return fault
}

// Err is nil when every entry is what it says, and names the first that is not.
func (v Verification) Err() error {
	failed, first := 0, ""
	for _, e := range v.Entries {
		if e.Fault() == "" {
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
