package nsys

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"zombiezen.com/go/sqlite"
)

// TestCutWhileRead cuts an export to its first two pages after the first row of
// a table was read.
func TestCutWhileRead(t *testing.T) {
	whole, err := os.ReadFile(filepath.Join(testdata, "gptoss-ep4-loop/normal.sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "cut.sqlite")
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := openDatabase(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	err = db.each(context.Background(), func(conn *sqlite.Conn) error {
		return query(conn, "SELECT * FROM "+callTable, func(*sqlite.Stmt) error {
			if rows++; rows == 1 {
				return os.Truncate(path, 2*4096)
			}
			return nil
		})
	})
	if !errors.Is(err, ErrDamaged) {
		t.Fatalf("after %d rows: want %v, have %v", rows, ErrDamaged, err)
	}
}
