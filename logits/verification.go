package logits

import (
	"errors"
	"strconv"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
)

// Verification is a survey as the JSON of 'logits verify' carries it.
type Verification struct {
	SchemaVersion int            `json:"schema_version"`
	Kind          string         `json:"kind"` // always VerificationKind
	Balance       []BatchBalance `json:"balance"`
	Entries       []EntryStatus  `json:"entries"`
}

// The kind and version of Verification's JSON.
const (
	VerificationKind   = "logits verify"
	VerificationSchema = 1
)

// BatchBalance is the balance of one batch over all ranks together; its numbers
// are undefined while entries are missing or bad. A batch is told by one of its
// two keys.
type BatchBalance struct {
	Model              string        `json:"model"`
	Method             router.Method `json:"method"`
	Plan               string        `json:"plan"`
	Mode               router.Mode   `json:"mode"`
	Layer              int           `json:"layer"`
	DType              DType         `json:"dtype"`
	Content            string        `json:"content"` // logits, or ids alone
	Ranks              int           `json:"ranks"`
	TokensPerRank      router.Number `json:"tokens_per_rank"`           // null where ranks differ
	TokensOfRanks      []int         `json:"tokens_of_ranks,omitempty"` // only where they do, by rank
	ExpertMaxOverMean  router.Number `json:"expert_max_over_mean"`
	ExpertFloor        router.Number `json:"expert_floor"`
	RankMaxOverMean    router.Number `json:"rank_max_over_mean"`
	RankFloor          router.Number `json:"rank_floor"`
	ActiveExperts      router.Number `json:"active_experts"`
	ActiveExpertsIdeal int           `json:"active_experts_ideal"`
	AtFloor            bool          `json:"at_floor"` // experts (with replicas: copies) and ranks are as even as whole slots can be
}

// Tokens is the batch in words: "8" tokens on every rank, or "9,2,0".
func (b BatchBalance) Tokens() string {
	if !b.TokensPerRank.Defined() {
		return joined(b.TokensOfRanks)
	}
	return strconv.Itoa(int(b.TokensPerRank))
}

// EntryStatus is what became of one entry. Where the file cannot be read, what it
// would say is null. Its batch is told as in BatchBalance.
type EntryStatus struct {
	Path          string         `json:"path"`
	Model         *string        `json:"model"`
	Method        *router.Method `json:"method"`
	Experts       *int           `json:"experts"`
	TopK          *int           `json:"top_k"`
	Ranks         *int           `json:"ranks"`
	Rank          *int           `json:"rank"`
	TokensPerRank router.Number  `json:"tokens_per_rank"`
	TokensOfRanks []int          `json:"tokens_of_ranks,omitempty"`
	Layer         *int           `json:"layer"`
	DType         *DType         `json:"dtype"`
	Content       *string        `json:"content"`
	Plan          *string        `json:"plan"`
	Status        string         `json:"status"` // exact, projected, infeasible, or "failed: " and why
}

// AtFloor is the number of batch sizes that are as even as can be.
func (v Verification) AtFloor() (n int) {
	for _, b := range v.Balance {
		if b.AtFloor {
			n++
		}
	}
	return n
}

// Verification is the survey in the form of JSON.
func (s Survey) Verification() Verification {
	v := Verification{SchemaVersion: VerificationSchema, Kind: VerificationKind, Balance: []BatchBalance{}, Entries: []EntryStatus{}}
	for _, b := range s.Batches {
		v.Balance = append(v.Balance, b.BatchBalance())
	}
	for _, e := range s.Entries {
		v.Entries = append(v.Entries, e.status())
	}
	return v
}

// BatchBalance is the balance in the form of JSON.
func (b BatchSurvey) BatchBalance() BatchBalance {
	active := router.Undefined()
	if len(b.MissingRanks) == 0 {
		active = router.Number(b.Experts.Active)
	}
	return BatchBalance{
		Model: b.Spec.Model, Method: b.Spec.Gate.Method, Plan: b.PlanName, Mode: b.Spec.Mode,
		Layer: b.Spec.Layer, DType: b.Spec.DType, Content: b.Spec.content(),
		Ranks: b.Spec.Layout.Ranks(), TokensPerRank: b.Batch.PerRank(), TokensOfRanks: b.Batch.OfRanks(),
		ExpertMaxOverMean: b.Experts.MaxOverMean, ExpertFloor: b.Floors.Expert,
		RankMaxOverMean: b.Ranks.MaxOverMean, RankFloor: b.Floors.Rank,
		ActiveExperts: active, ActiveExpertsIdeal: b.ActiveIdeal, AtFloor: b.AtFloor(),
	}
}

func (e EntrySurvey) status() EntryStatus {
	v := EntryStatus{Path: e.Path, TokensPerRank: router.Undefined()}
	if r := e.Record; r != nil {
		s, ranks, content := r.Spec, r.Spec.Layout.Ranks(), r.Spec.content()
		v.Model, v.Method, v.Experts, v.TopK = &s.Model, &s.Gate.Method, &s.Gate.Shape.Experts, &s.Gate.Shape.TopK
		v.Ranks, v.Rank, v.Layer, v.DType, v.Content, v.Plan = &ranks, &r.Rank, &s.Layer, &s.DType, &content, &r.PlanName
		v.TokensPerRank, v.TokensOfRanks = r.Batch.PerRank(), r.Batch.OfRanks()
		v.Status = string(r.Finding.Status)
	}
	if e.Err != nil {
		v.Status = "failed: " + e.Fault()
	}
	return v
}

// Fault is what is wrong with an entry, without its path; empty for a good one.
func (e EntrySurvey) Fault() string {
	if e.Err == nil {
		return ""
	}
	return fault(e.Err)
}

// fault is an error about a file without the file's name, where it can be told.
func fault(err error) string {
	if format := new(input.Error); errors.As(err, &format) {
		return format.Fault()
	}
	return err.Error()
}
