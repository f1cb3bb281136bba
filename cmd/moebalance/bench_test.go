package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moebalance/moebalance/compare/bench"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/testdata/require"
)

// invoke runs the program and returns what it printed and its exit code.
func invoke(ctx context.Context, args ...string) (stdout, stderr string, code int) {
	var out, errs bytes.Buffer
	code = run(ctx, args, strings.NewReader(""), &out, &errs)
	return out.String(), errs.String(), code
}

// put writes a file, with the folders that it is in, and returns its path.
func put(t *testing.T, path, text string) string {
	t.Helper()
	require.NoError(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755)))
	return path
}

// get is the text of a file.
func get(path string) string {
	text := require.Value(os.ReadFile(path))
	return string(text)
}

// script writes a shell script and returns its path.
func script(t *testing.T, text string) string {
	t.Helper()
	return put(t, filepath.Join(t.TempDir(), "engine"), "#!/bin/sh\n"+text)
}

// replayed is a command that prints, as its n-th launch of an arm, the n-th line
// of that arm in the recorded campaign of 12 launches on 4 H200s.
func replayed(t *testing.T) string {
	t.Helper()
	recorded := require.Value(filepath.Abs("../../testdata/pairs-abba.jsonl"))
	return script(t, fmt.Sprintf(`want=false
[ "$ENABLE_PERFECT_ROUTER" = 1 ] && want=true
grep "\"perfect_router\": $want" '%s' | sed -n "$(($1 + 1))p"
`, recorded))
}

// eachPair sets p to another digit in each pair of launches, for rates that are no copies.
const eachPair = `n=${MOEBALANCE_LAUNCH##*/}; p=$((${n:-0} / 2))
`

// engine prints a report with these rates, and tells the arms apart.
func engine(normal, perfect float64) string {
	return eachPair + fmt.Sprintf(`if [ "$ENABLE_PERFECT_ROUTER" = 1 ]
then echo '{"perfect_router":true,"ranks":2,"tokens_per_rank":8,"tokens_per_second":%.3f'$p}
else echo '{"perfect_router":false,"ranks":2,"tokens_per_rank":8,"tokens_per_second":%.3f'$p}
fi
`, perfect, normal)
}

func TestBenchOnTheRecordedCampaign(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "campaign")
	command := replayed(t)
	stdout, stderr, code := invoke(t.Context(), "bench", "--pairs", "6", "--seed", "1", "--campaign", folder,
		"--ranks", "4", "--format", "json", "--require-verdict", "--", command, "{pair}")
	if code != exitDone {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	var r source.Campaign
	require.NoError(t, json.Unmarshal([]byte(stdout), &r))
	if want := "--ranks 4 -- " + launch.Quote([]string{command, "{pair}"}); r.Run.Again != want {
		t.Errorf("next steps repeat %q, want %q", r.Run.Again, want)
	}
	near := func(got, want router.Number) bool { return got > want-0.0005 && got < want+0.0005 }
	// the geometric mean of the pairs; the interval is of the order that the seed draws
	if !near(r.Gain.Estimate, 0.2003) || !near(r.Gain.Low, 0.1392) || !near(r.Gain.High, 0.2919) ||
		r.Gain.Confidence != 0.95 || r.Gain.N != 6 {
		t.Errorf("gain %+v, want +20.0 %% (+13.9 %% to +29.2 %%)", r.Gain)
	}
	if r.Verdict != gain.Significant || r.Kind != "bench" || r.SchemaVersion != gain.SchemaVersion ||
		r.Threshold != 0.1 || len(r.Pairs) != 6 {
		t.Errorf("verdict %q, kind %q, threshold %v, %d pairs", r.Verdict, r.Kind, r.Threshold, len(r.Pairs))
	}
	ranks := make(map[gain.Arm]int)
	for _, p := range r.Proof {
		if p.Grade == gain.Claimed {
			ranks[p.Arm]++
		}
	}
	if ranks["normal"] != 4 || ranks["perfect"] != 4 {
		t.Errorf("proved ranks %v, want 4 in each arm", ranks)
	}
	if n := strings.Count(stderr, "] launch "); n != 12 {
		t.Errorf("%d lines about launches, want 12:\n%s", n, stderr)
	}
	// A finished campaign shows the same result again, and starts nothing.
	require.NoError(t, os.Remove(command))
	again, stderr, code := invoke(t.Context(), "bench", "--resume", folder, "--format", "json")
	if code != exitDone || again != stdout {
		t.Errorf("shown again: exit %d, %s, equal %t", code, stderr, again == stdout)
	}
	text, _, _ := invoke(t.Context(), "bench", "--resume", folder)
	if answer, stderr, _ := invoke(t.Context(), "bench", "--resume", folder, "--brief"); !strings.HasPrefix(text,
		answer) || strings.Count(answer, "\n") != 1 {
		t.Errorf("--brief: %q, %s", answer, stderr)
	}
	if first, _, _ := strings.Cut(text, "\n"); first != "Balanced routing is 20.0 % faster." ||
		!strings.Contains(text, "balance claimed, not measured") {
		t.Errorf("the first line is %q", first)
	}
}

// An invalid campaign is stopped after its first pair, and still shown.
func TestBenchStopsWhenArmsCannotBeCompared(t *testing.T) {
	t.Chdir(t.TempDir())
	stuck := script(t, `echo '{"perfect_router":false,"ranks":2,"tokens_per_rank":8,"tokens_per_second":5}'`)
	stdout, stderr, code := invoke(t.Context(), "bench", "--pairs", "6", "--campaign", "c", "--", stuck)
	if code != exitNotComparable || !strings.HasPrefix(stdout, "Invalid: ") {
		t.Errorf("exit %d, %q", code, stdout)
	}
	if n := strings.Count(stderr, "] launch "); n != 2 {
		t.Errorf("%d launches, want the first pair's 2:\n%s", n, stderr)
	}
}

// Arms that report different numbers end after their first pair, in words that say what they report.
func TestBenchOfDifferentReports(t *testing.T) {
	t.Chdir(t.TempDir())
	tool := script(t, `[ -z "$SWITCH" ] && echo "Throughput: 5 requests/s, 900 total tokens/s, 100 output tokens/s" ||
echo '{"elapsed_time": 2, "num_requests": 9, "total_num_tokens": 9, "requests_per_second": 8, "tokens_per_second": 12}'`)
	_, stderr, code := invoke(t.Context(), "bench", "--campaign", "c", "--arm", "a", "--arm", "b=SWITCH=on", "--", tool)
	if code != exitFailed || !strings.Contains(stderr, " give no gain: ") || !strings.Contains(stderr, "2 of 16 launches") {
		t.Errorf("exit %d, %s", code, stderr)
	}
}

func TestBenchInterruptAndResume(t *testing.T) {
	t.Chdir(t.TempDir())
	marker := filepath.Join(t.TempDir(), "started")
	slow := script(t, engine(100, 120)+fmt.Sprintf("[ $1 = 3 ] && [ ! -e '%s' ] && touch '%s' && sleep 30\ntrue\n",
		marker, marker))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for until := time.Now().Add(5 * time.Minute); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
			if _, err := os.Stat(marker); err == nil {
				break
			}
		}
		cancel()
	}()
	stdout, stderr, code := invoke(ctx, "bench", "--pairs", "6", "--campaign", "c", "--", slow, "{launch}")
	if code != exitInterrupted || stdout != "" ||
		!strings.Contains(stderr, "interrupted after 3 of 12 launches; resume with: moebalance bench --resume c") {
		t.Fatalf("exit %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	stdout, stderr, code = invoke(t.Context(), "bench", "--resume", "c")
	if code != exitDone || !strings.Contains(stdout, "\nimbalance significant") ||
		strings.Count(stderr, "] launch ") != 10 {
		t.Errorf("exit %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

// Of a number without a unit, a gain that routing cannot explain is another unit, and passes no gate.
func TestBenchReadsAnyNumber(t *testing.T) {
	for took, want := range map[string]struct {
		code int
		line string
	}{"800": {exitDone, "Balanced routing is 25.0 % faster.\nimbalance significant"},
		"0.800":  {exitInconclusive, "No decision: routing cannot explain a gain of +124"},
		"900000": {exitInconclusive, "No decision: routing cannot explain a gain of −99.9 %."}} {
		t.Chdir(t.TempDir())
		odd := script(t, eachPair+fmt.Sprintf(`if [ "$SWITCH" = on ]; then echo "balanced on rank 0"; echo "took %s$p"; else
echo "took 1000$p"; fi`, took))
		stdout, stderr, code := invoke(t.Context(), "bench", "--pairs", "6", "--campaign", "c", "--treatment",
			"env:SWITCH=on", "--ranks", "1", "--fail-above", "30%",
			"--proof", `balanced on rank (?P<rank>\d+)`, "--metric", `time::lower=took ([\d.]+)`, "--", odd)
		if code != want.code || !strings.HasPrefix(stdout, want.line) {
			t.Errorf("%s: exit %d, %q, %q", took, code, stdout, stderr)
		}
	}
}

func TestDatasetVerb(t *testing.T) {
	t.Chdir(t.TempDir())
	args := []string{"bench", "dataset", "--num-requests", "3", "--input-mean", "4", "--output-mean", "2"}
	stdout := captured(t, args)
	captured(t, append(args, "-o", "d.jsonl"))
	if file := get("d.jsonl"); strings.Count(stdout, "\n") != 3 || file != stdout {
		t.Errorf("%q, and the file holds %q", stdout, file)
	}
}

func TestProfileVerb(t *testing.T) {
	t.Chdir(t.TempDir())
	stdout, _, code := invoke(t.Context(), "profile", "--dry-run", "--perfect", "--iterations", "5-9", "--", "srun",
		"-n", "2", "prog", "{x}")
	if code != exitDone || !strings.Contains(stdout, "export TLLM_PROFILE_START_STOP=5-9\n") ||
		!strings.Contains(stdout, "ENABLE_PERFECT_ROUTER=1") ||
		!strings.HasSuffix(stdout, "moebalance-profile prog '{x}'\n") {
		t.Errorf("exit %d:\n%s", code, stdout)
	}
	nsys := script(t, `while [ "$1" != -o ]; do shift; done; touch "$2.nsys-rep"; shift 2; exec "$@"`)
	stdout, stderr, code := invoke(t.Context(), "profile", "--nsys", nsys, "--dir", "p", "--", "echo", "hello")
	if code != exitDone || stdout != "hello\n" || !strings.Contains(stderr, "p/report.rank0.nsys-rep") {
		t.Errorf("exit %d, %q, %q", code, stdout, stderr)
	}
	if _, stderr, code := invoke(t.Context(), "profile", "--nsys", nsys, "--dir", "p", "--",
		"echo"); code != exitUsage || !strings.Contains(stderr, "already holds report.rank0.nsys-rep") {
		t.Errorf("over old reports: exit %d, %q", code, stderr)
	}
	if stdout, _, _ := invoke(t.Context(), "profile", "--dry-run", "--perfect", "--treatment", "sglang", "--", "docker",
		"run", "x", "{nsys}", "prog"); !strings.Contains(stdout,
		"docker run x env NSYS_MPI_STORE_TEAMS_PER_RANK=1 SGLANG_SIMULATE_ROUND_ROBIN_EXPERTS=1 TLLM_") ||
		!strings.Contains(stdout, " sh -c ") || strings.Contains(stdout, "ENABLE_PERFECT_ROUTER") {
		t.Errorf("a marked place: %s", stdout)
	}
	if _, stderr, code := invoke(t.Context(), "profile", "--nsys", "true", "--dir", "q", "--",
		"echo"); code != exitFailed || !strings.Contains(stderr, "wrote no report") {
		t.Errorf("without a report: exit %d, %q", code, stderr)
	}
	half := script(t, `while [ "$1" != -o ]; do shift; done; touch "$2.qdstrm"`)
	if _, stderr, code := invoke(t.Context(), "profile", "--nsys", half, "--dir", "h", "--",
		"echo"); code != exitFailed || !strings.Contains(stderr, "importer") {
		t.Errorf("without an importer: exit %d, %q", code, stderr)
	}
	if _, _, code := invoke(t.Context(), "profile", "--nsys", nsys, "--dir", "r", "--", "false"); code != exitFailed {
		t.Errorf("a failing command: exit %d", code)
	}
}

// A tool that says nothing about routing, but whose engine records expert
// counts: the real ones of both arms, from 4 H200s.
func TestBenchProvesByCounts(t *testing.T) {
	root := require.Value(filepath.Abs("../../testdata/gptoss-ep4-ranks"))
	t.Chdir(t.TempDir())
	tool := script(t, eachPair+fmt.Sprintf(`arm=normal; rate=1000$p
[ "$SWITCH" = on ] && arm=perfect && rate=1300$p
cp -r '%s'/counts-$arm "$1"
echo "rate $rate"
`, root))
	args := []string{"bench", "--pairs", "6", "--campaign", "c", "--treatment", "env:SWITCH=on", "--metric",
		`rate::higher=rate (\d+)`, "--counts", "{out}/counts", "--", tool, "{out}/counts"}
	stdout, stderr, code := invoke(t.Context(), args...)
	if code != exitDone || !strings.HasPrefix(stdout, "Balanced routing is 30.0 % faster.\nimbalance significant") {
		t.Errorf("exit %d, %q\n%s", code, stderr, stdout)
	}
	// The same without a switch that does anything: both arms are skewed.
	args[4], args[6] = "d", "env:OTHER=on"
	if _, stderr, code := invoke(t.Context(), args...); code != exitNotComparable {
		t.Errorf("exit %d, %q; want %d", code, stderr, exitNotComparable)
	}
}

// Launches that hold all arms have a time limit unless one is given: 30 minutes for each of 8 timed runs.
func TestLimitOfLaunches(t *testing.T) {
	for limit, words := range map[time.Duration][]string{4 * time.Hour: {"--launches", "5"}, 0: {"--pairs", "6"},
		time.Minute: {"--launches", "5", "--timeout", "1m"}} {
		t.Chdir(t.TempDir())
		invoke(t.Context(), "logits", "generate", "--model", "e4k2", "--ep", "1", "--cache", "logits")
		t.Setenv("MOEBALANCE_CACHE", "logits")
		words = append([]string{"bench", "--treatment", "hook", "--campaign", "c", "--server", "false", "--ready",
			"http://127.0.0.1:1/health", "--client", "false", "--counts", "{out}/c"}, words...)
		_, stderr, _ := invoke(t.Context(), words...)
		c, err := bench.Open("c")
		if err != nil {
			t.Fatalf("%v: %v, %s", words, err, stderr)
		}
		if c.Close(); c.Spec.Timeout != limit {
			t.Errorf("%v: limit %s, want %s", words, c.Spec.Timeout, limit)
		}
	}
}
