package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/moebalance/moebalance/router/draft"
	"github.com/moebalance/moebalance/router/input"
)

// storeName is the campaign file below the campaign folder, and storeVersion the version of its lines: the first holds
// the campaign with the order of its launches, which does not change, and each later one an attempt as it then stood.
// Of several about one attempt the last holds.
const (
	storeName    = "campaign.jsonl"
	storeVersion = 5
)

// entry is a line of the campaign file.
type entry struct {
	Version  int       `json:"version,omitempty"` // of the first line
	Campaign *Campaign `json:"campaign,omitempty"`
	Position int       `json:"position,omitempty"` // of the attempt's launch
	Attempt  *Attempt  `json:"attempt,omitempty"`
}

// IsCampaign reports whether a folder holds a campaign. It opens nothing.
func IsCampaign(folder string) bool {
	info, err := os.Stat(filepath.Join(folder, storeName))
	return err == nil && info.Mode().IsRegular()
}

// writeEntry writes a line that is on disk before the next step is taken.
func writeEntry(f *os.File, e entry) error {
	text, err := json.Marshal(e)
	if err == nil {
		_, err = f.Write(append(text, '\n'))
	}
	return errors.Join(err, f.Sync())
}

// createStore writes a new campaign file, whole or not at all, for its owner alone: commands may hold secrets.
func createStore(folder string, c Campaign) error {
	return draft.Write("."+storeName+".", filepath.Join(folder, storeName), 0o600, func(f *os.File) error {
		return writeEntry(f, entry{Version: storeVersion, Campaign: &c})
	})
}

// openStore reads the campaign file, and opens it to write if asked. A line that has no end was cut off by a kill, or
// is being written: it is none.
func openStore(folder string, write bool) (c Campaign, err error) {
	path := filepath.Join(folder, storeName)
	text, err := os.ReadFile(path)
	if err != nil {
		return c, &input.Error{File: folder, Expected: "a folder of 'moebalance bench' with a " + storeName, Err: err}
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	var first entry
	for n, line := range bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n")) {
		e := entry{}
		err := json.Unmarshal(line, &e)
		switch {
		case n == 0 && (err != nil || e.Version != storeVersion || e.Campaign == nil):
			return c, &input.Error{File: path, Expected: fmt.Sprintf("a campaign of version %d", storeVersion),
				Found: fmt.Sprintf("version %d", e.Version)}
		case n == 0:
			first = e
		case err == nil && e.Attempt != nil:
			err = first.Campaign.take(e.Position, *e.Attempt)
		}
		if err != nil {
			return c, fmt.Errorf("%s: line %d: %w", path, n+1, err)
		}
	}
	if c = *first.Campaign; write {
		if c.file, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0); err == nil {
			err = c.file.Truncate(int64(len(text)))
		}
	}
	return c, err
}

// take adds an attempt, new or changed. A launch is finished once, by its last attempt.
func (c *Campaign) take(position int, a Attempt) error {
	if position < 0 || position >= len(c.Launches) {
		return fmt.Errorf("an attempt at launch %d of %d", position, len(c.Launches))
	}
	l := &c.Launches[position]
	switch last := len(l.Attempts) - 1; {
	case last >= 0 && l.Attempts[last].Number == a.Number:
		l.Attempts[last] = a
	case last >= 0 && l.Attempts[last].State == Finished:
		return fmt.Errorf("an attempt after launch %d was finished", position)
	default:
		l.Attempts = append(l.Attempts, a)
	}
	return nil
}

// write writes an attempt, new or changed.
func (c *Campaign) write(position int, a Attempt) error {
	return writeEntry(c.file, entry{Position: position, Attempt: &a})
}
