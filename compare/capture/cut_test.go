package capture

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/capture/rows"
	"github.com/moebalance/moebalance/testdata/require"
)

// An export that is cut to its first two pages after the first row of a table was
// read gives an error, with SQLite as without.
func TestCutWhileRead(t *testing.T) {
	whole := require.Value(os.ReadFile("../../testdata/gptoss-ep4-loop/normal.sqlite"))
	path := filepath.Join(t.TempDir(), "cut.sqlite")
	// a text that is none needs SQLite
	for what, text := range map[string]string{"by SQLite": "correlationId", "from pages": ""} {
		require.NoError(t, os.WriteFile(path, whole, 0o600))
		db := require.Value(openExport(context.Background(), path))
		seen := 0
		err := db.stream(context.Background(), rows.Query{Table: callTable, Text: text}, func(*rows.Row) error {
			if seen++; seen == 1 {
				return os.Truncate(path, 2*4096)
			}
			return nil
		})
		err = db.failed(context.Background(), "reading", err)
		if db.sql.Close(); err == nil || !strings.Contains(err.Error(), "damaged") || seen > 10_000 {
			t.Errorf("%s: after %d rows: %v", what, seen, err)
		}
	}
}
