package launch

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"
)

// What a failed command printed last is shown without its secrets.
func TestLastLineIsMasked(t *testing.T) {
	folder := t.TempDir()
	words := []string{"sh", "-c", "echo 'refused: HF_TOKEN=hf_1 at http://me:pw@host/x' >&2; exit 3"}
	_, err := Job{
		Drive: func(ctx context.Context, run func(context.Context, Run) error) error {
			return run(ctx, Run{Words: words, Folder: folder})
		},
		Folder: folder, Dir: folder, Env: os.Environ(), Marker: NewMarker("mask-test"),
		Grace: Grace{Interrupt: time.Second, Terminate: time.Second}, Ending: func() {},
	}.Run(context.Background())
	if want := `its last line was "refused: HF_TOKEN=(redacted) at http://(redacted)@host/x"`; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}
