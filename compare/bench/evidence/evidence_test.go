package evidence

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/testdata/require"
)

// The most that a rank recorded counts; a file that does not say is none.
func TestRecordedShare(t *testing.T) {
	for files, want := range map[string]float64{
		`{"steps": 8, "steps_recorded": 2}; {"steps": 8, "steps_recorded": 4}`: 0.5, `{"steps": 2, "steps_recorded": 4}`: 1, `{"steps_recorded": 3}; {"steps": 8`: 0, "": 0} {
		folder := t.TempDir()
		for rank, text := range strings.Split(files, "; ") {
			path := filepath.Join(folder, fmt.Sprintf("moebalance-hook.rank%d.json", rank))
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		}
		if have := RecordedShare(folder); have != want {
			t.Errorf("%s: have %v, want %v", files, have, want)
		}
	}
}

// Processes are the product of tensor and pipeline ranks, and 0 of a command that names neither.
func TestWordsOfACommand(t *testing.T) {
	for command, want := range map[string]string{"serve --tp_size 4 --ep_size=2": "2 4 ",
		"serve --tp=2 --pp-size 3": "0 6 ", "serve --moe-expert-parallel-size 4": "4 0 ", "serve --steps 8 --help": "0 0 ", "serve --ep 2 --ep 4": "2 0 ",
		"serve models/DeepSeek-V3": "0 0 models/DeepSeek-V3", "serve --model=org/DeepSeek-R1": "0 0 org/DeepSeek-R1",
		"serve Qwen3-30B-A3B": "0 0 "} {
		words := strings.Fields(command)
		ranks, processes := Ranks(words)
		if have := fmt.Sprint(ranks, processes, " ", GroupLimited(words)); have != want {
			t.Errorf("%s: have %q, want %q", command, have, want)
		}
	}
}
