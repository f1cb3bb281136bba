package bench

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"github.com/moebalance/moebalance/router/input"
	_ "modernc.org/sqlite" // the driver "sqlite"
)

// storeVersion is the version of the campaign file's tables.
const storeVersion = 4

// storeName is the campaign file below the campaign folder.
const storeName = "campaign.sqlite"

// IsCampaign reports whether a folder holds a campaign. It opens nothing.
func IsCampaign(folder string) bool {
	info, err := os.Stat(filepath.Join(folder, storeName))
	return err == nil && info.Mode().IsRegular()
}

// store is the campaign file. Every write is one transaction that is on disk
// before the next step is taken.
type store struct{ db *sql.DB }

// tables hold the campaign with the order of its launches, which does not change, and the attempts at each.
const tables = `
CREATE TABLE campaign (
	one         INTEGER PRIMARY KEY CHECK (one = 1),
	record      TEXT NOT NULL
);
CREATE TABLE attempt (
	position    INTEGER NOT NULL,
	number      INTEGER NOT NULL,
	state       TEXT NOT NULL,
	record      TEXT NOT NULL,
	PRIMARY KEY (position, number)
);
CREATE UNIQUE INDEX finished_once ON attempt (position) WHERE state = 'finished';
`

// openDB opens a file. The driver reads parameters only with the "file:" scheme.
func openDB(path, parameters string) (*sql.DB, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: abs, RawQuery: parameters}).String())
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	return db, err
}

// createStore writes a new campaign file, whole or not at all.
func createStore(folder string, c Campaign) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	path := filepath.Join(folder, storeName)
	draft := path + ".new"
	for _, beside := range []string{"-wal", "-shm"} { // of a campaign that is replaced
		_ = os.Remove(path + beside)
	}
	if err := os.WriteFile(draft, nil, 0o600); err != nil { // commands may hold secrets
		return err
	}
	db, err := openDB(draft, "_pragma=journal_mode(OFF)&_pragma=synchronous(FULL)")
	if err == nil {
		_, err = db.Exec(tables+fmt.Sprintf("PRAGMA user_version = %d; INSERT INTO campaign VALUES (1, ?)", storeVersion),
			string(text))
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		return errors.Join(err, os.Remove(draft))
	}
	return os.Rename(draft, path)
}

// openStore opens the campaign file to read and, if asked, to write.
func openStore(folder string, write bool) (s store, err error) {
	path := filepath.Join(folder, storeName)
	if _, err := os.Stat(path); err != nil {
		return s, &input.Error{File: folder, Expected: "a folder of 'moebalance bench' with a " + storeName, Found: "none",
			Try: "name the folder of --campaign; 'moebalance compare' shows a JSON result"}
	}
	parameters := "mode=ro&_pragma=busy_timeout(5000)"
	if write {
		parameters = "_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"
	} else if _, err := os.Stat(path + "-wal"); err != nil {
		parameters += "&immutable=1" // nobody is writing: readable even where we may not write
	}
	if s.db, err = openDB(path, parameters); err != nil {
		return s, err
	}
	version := 0
	if err = s.db.QueryRow("PRAGMA user_version").Scan(&version); err != nil {
		err = &input.Error{File: path, Expected: "a campaign file that opens", Found: err.Error(), Err: err,
			Try: fmt.Sprintf("what the launches printed is in %s: 'moebalance compare' takes the files of an arm as a side",
				filepath.Join(folder, launchesFolder))}
	} else if version != storeVersion {
		err = &input.Error{File: path, Expected: fmt.Sprintf("a campaign file of version %d", storeVersion),
			Found: fmt.Sprintf("version %d", version)}
	}
	if err != nil {
		s.db.Close()
	}
	return s, err
}

// load reads the whole campaign.
func (s store) load() (c Campaign, err error) {
	var record string
	if err = s.db.QueryRow("SELECT record FROM campaign").Scan(&record); err == nil {
		err = json.Unmarshal([]byte(record), &c)
	}
	if err != nil {
		return c, fmt.Errorf("reading the campaign: %w", err)
	}
	rows, err := s.db.Query("SELECT position, record FROM attempt ORDER BY position, number")
	if err != nil {
		return c, fmt.Errorf("reading the launches: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var at int
		var a Attempt
		if err = rows.Scan(&at, &record); err == nil {
			err = json.Unmarshal([]byte(record), &a)
		}
		switch {
		case err != nil:
			return c, fmt.Errorf("the record of launch %d: %w", at, err)
		case at < 0 || at >= len(c.Launches):
			return c, fmt.Errorf("an attempt at launch %d of %d", at, len(c.Launches))
		}
		c.Launches[at].Attempts = append(c.Launches[at].Attempts, a)
	}
	return c, rows.Err()
}

// save writes an attempt, new or changed.
func (s store) save(position int, a Attempt) error {
	text, err := json.Marshal(a)
	if err == nil {
		_, err = s.db.Exec(`INSERT INTO attempt (position, number, state, record) VALUES (?, ?, ?, ?)
			ON CONFLICT (position, number) DO UPDATE SET state = excluded.state, record = excluded.record`,
			position, a.Number, a.State, string(text))
	}
	if err != nil {
		return fmt.Errorf("writing launch %d into the campaign: %w", position, err)
	}
	return nil
}
