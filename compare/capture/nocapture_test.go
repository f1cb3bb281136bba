package capture

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/router/input"
)

// What is no capture is named for what it is, without a byte of binary data.
func TestWhatIsNoCapture(t *testing.T) {
	for content, want := range map[string]struct {
		kind error
		text string
	}{
		"":                             {ErrNotExport, "an empty file"},
		"SQLite format 3\x00 and more": {ErrTruncated, "a header of 100 bytes"},
		"version https://git-lfs.github.com/spec/v1\n": {input.ErrPointer, "a Git LFS pointer"},
		"\x1f\x8b\x08\x00":        {ErrNotExport, "a gzip file that holds neither"},
		"\x7fELF\x02\x01\x01\x00": {ErrNotExport, "binary data"},
		"\xff":                    {ErrNotExport, "binary data"},
		"größe über alles, 12 €":  {ErrNotExport, `text that begins with "größe über a"`},
		strings.Repeat("é", 60):   {ErrNotExport, "text that begins with"},
	} {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Read(context.Background(), path, nil)
		if !errors.Is(err, want.kind) || !strings.Contains(err.Error(), want.text) {
			t.Errorf("%q: want %v, %s; have %v", content, want.kind, want.text, err)
		}
	}
}
