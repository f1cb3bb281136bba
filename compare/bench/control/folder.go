package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/router/draft"
	"github.com/moebalance/moebalance/router/input"
)

// Order is what the driver wants of every rank.
type Order struct {
	Sequence  int    `json:"sequence"`
	Arm       string `json:"arm"`
	Router    string `json:"router"` // as MOEBALANCE_ROUTER names it; "off" is the learned gate
	ExpiresNS int64  `json:"expires_ns"`
}

// Ack is the last answer of a rank.
type Ack struct {
	Sequence int    `json:"sequence"`
	Arm      string `json:"arm"`
	Router   string `json:"router"` // that routes now
	Steps    int64  `json:"steps"`  // before those under it
	TimeNS   int64  `json:"time_ns"`
	Rank     int    `json:"rank"` // global
	Ranks    int    `json:"ranks"`
	Expired  bool   `json:"expired,omitempty"`
	Error    string `json:"error,omitempty"` // why the router stayed as it was
}

// Folder is the way from the driver to the ranks and back: arm.json, seen.rank<r>.json and ack.rank<r>.json.
type Folder string

const orderName = "arm.json"

// Write replaces the order, so that nobody reads half of one.
func (f Folder) Write(o Order) error { return save(f, orderName, o) }

func save(f Folder, name string, value any) error {
	text, _ := json.Marshal(value) // numbers and texts always marshal
	// Ranks may be another user's.
	return draft.Write("."+name+".", filepath.Join(string(f), name), 0o644, func(d *os.File) error {
		_, err := d.Write(append(text, '\n'))
		return err
	})
}

// Answers are the last ones of all ranks, and how many have seen the order of a sequence.
func (f Folder) Answers(sequence int) (acks []Ack, seen int, err error) {
	entries, err := os.ReadDir(string(f))
	if err != nil {
		return nil, 0, err
	}
	for _, e := range entries {
		kind, _, ok := strings.Cut(e.Name(), ".rank")
		if !ok || kind != "ack" && kind != "seen" || !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		var a Ack
		path := filepath.Join(string(f), e.Name())
		text, err := input.ReadFile(path, 1<<20)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = json.Unmarshal(text, &a)
		}
		switch {
		case err != nil:
			return nil, 0, fmt.Errorf("%s: want a rank's answer: %w", path, err)
		case kind == "ack":
			acks = append(acks, a)
		case a.Sequence == sequence:
			seen++
		}
	}
	slices.SortFunc(acks, func(a, b Ack) int { return a.Rank - b.Rank })
	return acks, seen, nil
}
