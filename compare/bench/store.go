package bench

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

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

const tables = `
CREATE TABLE campaign (
	one         INTEGER PRIMARY KEY CHECK (one = 1),
	id          TEXT NOT NULL,
	created_ns  INTEGER NOT NULL,
	spec        TEXT NOT NULL
);
CREATE TABLE launch (
	position    INTEGER PRIMARY KEY,
	arm         TEXT NOT NULL,        -- empty: all
	pair        INTEGER NOT NULL,
	place       INTEGER NOT NULL,
	point       TEXT NOT NULL         -- empty: none, or all
);
CREATE TABLE attempt (
	position    INTEGER NOT NULL REFERENCES launch (position),
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
func createStore(folder, id string, created time.Time, spec Spec, plan []Launch) error {
	path := filepath.Join(folder, storeName)
	draft := path + ".new"
	if err := os.Remove(draft); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.WriteFile(draft, nil, 0o600); err != nil { // commands may hold secrets
		return err
	}
	db, err := openDB(draft, "_pragma=journal_mode(OFF)&_pragma=synchronous(FULL)")
	if err != nil {
		return err
	}
	if err := errors.Join(fill(db, id, created, spec, plan), db.Close()); err != nil {
		return errors.Join(err, os.Remove(draft))
	}
	return os.Rename(draft, path)
}

// fill writes the tables, the spec and the order of the launches.
func fill(db *sql.DB, id string, created time.Time, spec Spec, plan []Launch) error {
	text, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	write := func(query string, args ...any) {
		if err == nil {
			_, err = tx.Exec(query, args...)
		}
	}
	write(tables + fmt.Sprintf("PRAGMA user_version = %d", storeVersion))
	write("INSERT INTO campaign (one, id, created_ns, spec) VALUES (1, ?, ?, ?)", id, created.UnixNano(), string(text))
	for _, l := range plan {
		write("INSERT INTO launch (position, arm, pair, place, point) VALUES (?, ?, ?, ?, ?)", l.Position, l.Arm, l.Pair,
			l.Place, l.Point)
	}
	if err != nil {
		return err
	}
	return tx.Commit()
}

// openStore opens the campaign file to read and, if asked, to write.
func openStore(folder string, write bool) (s store, err error) {
	path := filepath.Join(folder, storeName)
	if _, err := os.Stat(path); err != nil {
		return s, &input.Error{File: folder, Expected: "a folder of 'moebalance bench' with a " + storeName, Found: "none"}
	}
	parameters := "mode=ro&_pragma=busy_timeout(5000)"
	if write {
		parameters = "_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=foreign_keys(1)"
	} else if _, err := os.Stat(path + "-wal"); err != nil {
		parameters += "&immutable=1" // nobody is writing: readable even where we may not write
	}
	if s.db, err = openDB(path, parameters); err != nil {
		return s, err
	}
	version := 0
	if err = s.db.QueryRow("PRAGMA user_version").Scan(&version); err != nil {
		err = &input.Error{File: path, Expected: "a campaign file", Err: err}
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
	var spec string
	var created int64
	if err := s.db.QueryRow("SELECT id, created_ns, spec FROM campaign").Scan(&c.ID, &created, &spec); err != nil {
		return c, fmt.Errorf("reading the campaign: %w", err)
	}
	if err := json.Unmarshal([]byte(spec), &c.Spec); err != nil {
		return c, fmt.Errorf("reading the campaign's spec: %w", err)
	}
	c.Created = time.Unix(0, created).UTC()
	if c.Launches, err = s.launches(); err != nil {
		return c, fmt.Errorf("reading the launches: %w", err)
	}
	return c, nil
}

// launches are the order, with the attempts so far.
func (s store) launches() (launches []Launch, err error) {
	rows, err := s.db.Query(`SELECT position, arm, pair, place, point, record FROM launch LEFT JOIN attempt USING (position)
		ORDER BY position, number`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var l Launch
		var record sql.NullString // of one attempt; none of a launch without
		if err := rows.Scan(&l.Position, &l.Arm, &l.Pair, &l.Place, &l.Point, &record); err != nil {
			return nil, err
		}
		if n := len(launches); l.Position == n {
			launches = append(launches, l)
		} else if l.Position != n-1 {
			return nil, fmt.Errorf("position %d follows %d: the order has a gap", l.Position, n-1)
		}
		if record.Valid {
			var a Attempt
			if err := json.Unmarshal([]byte(record.String), &a); err != nil {
				return nil, fmt.Errorf("the record of launch %d: %w", l.Position, err)
			}
			launches[l.Position].Attempts = append(launches[l.Position].Attempts, a)
		}
	}
	return launches, rows.Err()
}

// save writes an attempt, new or changed.
func (s store) save(position int, a Attempt) error {
	text, err := json.Marshal(a)
	if err == nil {
		_, err = s.db.Exec(`INSERT INTO attempt (position, number, state, record) VALUES (?, ?, ?, ?)
			ON CONFLICT (position, number) DO UPDATE SET state = excluded.state, record = excluded.record`,
			position, a.Number, a.State, string(text))
	}
	return err
}
