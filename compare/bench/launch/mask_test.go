package launch

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/moebalance/moebalance/router/shown"
)

func TestMask(t *testing.T) {
	for line, want := range map[string]string{
		"vllm bench --api-key sk-1 --max-num-tokens 8 --tokenizer t": "vllm bench --api-key '(redacted)' --max-num-tokens 8 --tokenizer t",
		"run --hf-token=hf_1 --model m":                              "run '--hf-token=(redacted)' --model m",
		"env HF_TOKEN=hf_1 OMP_NUM_THREADS=2 run":                    "env 'HF_TOKEN=(redacted)' OMP_NUM_THREADS=2 run",
		"sh -c 'HF_TOKEN=hf 1; run --password pw; next'":             "sh -c 'HF_TOKEN=(redacted)'",
		"sh -c 'export HF_TOKEN=hf_1; run --password pw; next'":      "sh -c 'export HF_TOKEN=(redacted); run --password (redacted); next'",
		"curl -H 'Authorization: Bearer abc' http://me:pw@host/x":    "curl -H 'Authorization: Bearer (redacted)' 'http://(redacted)@host/x'",
		"run --key-value-heads 8 --ssl-keyfile f --tokens=5 a@b.c":   "run --key-value-heads 8 --ssl-keyfile f --tokens=5 a@b.c",
		"env VLLM_AUTHTOKEN=1 S3_ACCESSKEY=2 --hotkey=3 run":         "env 'VLLM_AUTHTOKEN=(redacted)' 'S3_ACCESSKEY=(redacted)' --hotkey=3 run",
		"run --token": "run --token",
		`run --x '{"api_key": "sk-1", "hf_token":"a b","pad_id": 0}'`:                      `run --x '{"api_key": (redacted), "hf_token":(redacted),"pad_id": 0}'`,
		`run --x "{'headers': {'Authorization': 'sk 1'}}" api_key:sk-1 --y 'password: pw'`: `run --x '{'\''headers'\'': {'\''Authorization'\'': (redacted)}}' 'api_key:(redacted)' --y 'password: (redacted)'`,
		`run "{\\\"api_key\\\": \\\"sk-1\\\", 'n': 1}" 'missing key: x' max_tokens:5`:      `run '{\"api_key\": (redacted), '\''n'\'': 1}' 'missing key: x' max_tokens:5`,
	} {
		words, err := Words(line)
		if err != nil {
			t.Fatal(err)
		}
		if got := Quote(shown.Mask(words)); got != want {
			t.Errorf("%s\nhave %s\nwant %s", line, got, want)
		}
	}
}

// What a failed command printed last is shown without its secrets.
func TestLastLineIsMasked(t *testing.T) {
	folder := t.TempDir()
	_, err := Job{
		Runs: []Run{{Words: []string{"sh", "-c", "echo 'refused: HF_TOKEN=hf_1 at http://me:pw@host/x' >&2; exit 3"},
			Folder: folder}}, Folder: folder, Dir: folder, Env: os.Environ(), Marker: NewMarker("mask-test"),
		Grace: Grace{Interrupt: time.Second, Terminate: time.Second}, Ending: func() {},
	}.Run(context.Background())
	if want := `its last line was "refused: HF_TOKEN=(redacted) at http://(redacted)@host/x"`; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}
