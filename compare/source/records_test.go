package source

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/bench"
	"github.com/moebalance/moebalance/compare/gain"
)

// recordsOf are the records that arguments name; none unless all are.
func recordsOf(args []string) ([]string, error) {
	arms, err := ReadArms(args, nil)
	if arms.Kind != Records {
		return nil, nil
	}
	return arms.Paths, err
}

// The five launches of vLLM on an H100 against numbers computed by hand from their records: of each
// launch the mean over blocks of the log ratios of geometric means, and Student's t over launches.
func TestFieldOneLaunch(t *testing.T) {
	paths, err := recordsOf([]string{"../../testdata/field/results/vllm-one-launch-h100"})
	if err != nil || len(paths) != 5 {
		t.Fatalf("%v, %v: want the five records of the folder", paths, err)
	}
	for metric, want := range map[string][]float64{ // the gain, its bounds, and those of the launches, in %, without a segment that falls out
		"prefill": {5.35, 5.14, 5.57, 5.39, 5.47, 5.14, 5.21, 5.55},
		"decode":  {-1.10, -1.79, -0.41, -1.37, -0.86, -0.84, -0.51, -1.94},
	} {
		judged := bench.Spec{Threshold: 0.1, Confidence: 0.95, WorkTolerance: 0.01, Metric: metric,
			Custom: []string{metric + ":tok/s=$." + metric}}
		r, err := JudgeRecords(paths, judged)
		if err != nil {
			t.Fatal(err)
		}
		got := []float64{float64(r.Gain.Estimate), float64(r.Gain.Low), float64(r.Gain.High)}
		for _, l := range r.Launches {
			got = append(got, float64(l.Gain))
		}
		if len(got) != len(want) || r.Gain.Method != gain.LaunchT || r.Verdict != gain.NotSignificant {
			t.Fatalf("%s: %v by %s, %s", metric, got, r.Gain.Method, r.Verdict)
		}
		for i := range want {
			if math.Abs(100*got[i]-want[i]) > 0.006 {
				t.Errorf("%s: number %d is %.3f %%, want %.2f %%", metric, i, 100*got[i], want[i])
			}
		}
	}
}

// A folder is of records if all of its files are; a metric that a record has is judged by a rule that
// says which direction is better, and the error says how.
func TestRecordsOfFolders(t *testing.T) {
	folder := t.TempDir()
	text, err := os.ReadFile("../../testdata/field/results/vllm-one-launch-h100/launch0.json")
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, text []byte) {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("a.json", text)
	for _, args := range [][]string{{folder}, {filepath.Join(folder, "*.json")}, {filepath.Join(folder, "a.json")}} {
		if paths, err := recordsOf(args); err != nil || len(paths) != 1 {
			t.Errorf("%v: %v, %v", args, paths, err)
		}
	}
	if _, err := recordsOf([]string{folder, filepath.Join(folder, "a.json")}); err == nil {
		t.Error("a record counts twice")
	}
	_, err = JudgeRecords([]string{filepath.Join(folder, "a.json")}, bench.Spec{Metric: "prefill",
		Threshold: 0.1, Confidence: 0.95})
	if err == nil || !strings.Contains(err.Error(), "--metric 'prefill::higher=$.prefill'") {
		t.Errorf("%v: want the rule to give", err)
	}
	_, err = JudgeRecords([]string{filepath.Join(folder, "a.json")}, bench.Spec{Threshold: 0.1, Confidence: 0.95})
	if !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), "'decode::higher=$.decode'") ||
		!strings.Contains(err.Error(), "'prefill::higher=$.prefill'") {
		t.Errorf("%v: want both numbers named, not the time of a segment judged", err)
	}
	write("b.json", append([]byte("ready\n"), text...))
	judged := bench.Spec{Metric: "prefill", Custom: []string{"prefill::higher=$.prefill"}, Threshold: 0.1, Confidence: 0.95, WorkTolerance: 0.01}
	copied := []string{filepath.Join(folder, "a.json"), filepath.Join(folder, "b.json")}
	if _, err := JudgeRecords(copied, judged); err == nil || !strings.Contains(err.Error(), "of the same launch") {
		t.Errorf("%v: want that a copy is no launch", err)
	}
	write("b.json", slices.Concat(text, text)) // two calls in one process
	r, err := JudgeRecords(copied[1:], judged)
	if err != nil || r.Gain.Method != gain.OneLaunch || len(r.Launches[0].Blocks) != 4 {
		t.Errorf("%v, %+v: want one launch of four blocks", err, r.Launches)
	}
	write("b.json", []byte("{}"))
	if paths, err := recordsOf([]string{folder}); err != nil || len(paths) > 0 {
		t.Errorf("with another file: %v, %v", paths, err)
	}
}
