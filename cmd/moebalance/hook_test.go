//go:build unix

package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/testdata/require"
)

// An engine that records through the hook measures its routing; one that leaves only
// proof files claims it. The counts are real ones, of 4 ranks.
func TestBenchTreatmentHook(t *testing.T) {
	recorded := require.Value(filepath.Abs("../../testdata/gptoss-ep4-ranks"))
	cache := filepath.Join(t.TempDir(), "cache")
	ask(t, exitDone, nil, "logits", "generate", "--model", "mixtral-8x7b", "--ep", "4", "--cache", cache)
	t.Setenv("PYTHONPATH", "/elsewhere")
	t.Setenv("MOEBALANCE_CACHE", "")
	for _, have := range []string{"", cache} {
		want := map[string]string{"": `in MOEBALANCE_CACHE, have ""`, cache: "want the hook in PYTHONPATH"}[have]
		t.Setenv("MOEBALANCE_CACHE", have)
		if _, stderr, code := invoke(t.Context(), "profile", "--perfect", "--treatment", "hook", "--dry-run", "--", "vllm"); code !=
			exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("exit %d, %s, want %s", code, stderr, want)
		}
	}
	report := engine(100, 120)
	for grade, record := range map[string]string{
		"measured": `[ "$ENABLE_PERFECT_ROUTER" = 1 ] && arm=perfect || arm=normal; cp -r ` + recorded +
			`/counts-$arm "$MOEBALANCE_COUNTS"`,
		"claimed": `mkdir -p "$MOEBALANCE_COUNTS"; [ "$ENABLE_PERFECT_ROUTER" = 1 ] && router=perfect || router=off
for rank in 0 1; do echo '{"claim": "moebalance hook: rank '$rank' of 2 routes 48 layers by '$router'"}' > "$MOEBALANCE_COUNTS/moebalance-hook.rank$rank.json"; done`,
	} {
		folder := t.TempDir()
		text := "#!/bin/sh\ncase $PYTHONPATH in */c/hook:/elsewhere) ;; *) exit 9;; esac\ntest -s \"${PYTHONPATH%%:*}/moebalance_hook/__init__.py\" || exit 8\n" + record + "\n" + report
		script := put(t, filepath.Join(folder, "engine.sh"), text)
		var r struct {
			Proof []struct {
				Arm   string `json:"arm"`
				Rank  *int   `json:"rank"`
				Grade string `json:"grade"`
			} `json:"proof"`
		}
		ask(t, exitDone, &r, "bench", "--treatment", "hook", "--pairs", "6", "--ranks",
			map[string]string{"measured": "4", "claimed": "2"}[grade],
			"--campaign", filepath.Join(folder, "c"), "--format", "json", "--", script)
		if len(r.Proof) == 0 {
			t.Errorf("%s: no proof", grade)
		}
		for _, p := range r.Proof {
			if p.Grade != grade {
				t.Errorf("%s: %+v", grade, p)
			}
		}
	}
}

// What hook prints is for a shell, whatever the folder is called.
func TestHookPrintsForAShell(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "it's $HOME `here`")
	stdout, stderr, code := invoke(t.Context(), "hook", "-o", folder)
	if code != exitDone {
		t.Fatalf("exit %d, %s", code, stderr)
	}
	t.Setenv("PYTHONPATH", folder)
	if err := checkHooked(nil); err != nil {
		t.Error(err)
	}
	command := exec.Command("sh", "-c", stdout+`printf %s "$PYTHONPATH"`)
	command.Env = []string{"PYTHONPATH=/other"}
	if out, err := command.Output(); err != nil || string(out) != folder+":/other" {
		t.Errorf("%q, %v, want %q", out, err, folder+":/other")
	}
}
