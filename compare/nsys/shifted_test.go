package nsys

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Times shifted to the clock of the host, as 'nsys export --ts-normalize' writes them, or
// by a number beyond 2^53 give the numbers of the same captures unshifted.
func TestShiftedTimes(t *testing.T) {
	exports, _ := filepath.Glob(filepath.Join(testdata, "gptoss-ep4-ranks/normal.rank?.sqlite"))
	want := asJSON(t, mustRead(t, Options{}, exports...))
	shifts := map[string]string{"by a number": "1700000000000000000",
		"to the host's clock": "(SELECT utcEpochNs FROM " + sessionTable + ")"}
	for what, shift := range shifts {
		dir := t.TempDir()
		var shifted []string
		for _, path := range exports {
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			copied := filepath.Join(dir, filepath.Base(path))
			if err := os.WriteFile(copied, content, 0o600); err != nil {
				t.Fatal(err)
			}
			var script strings.Builder
			for _, table := range []string{kernelTable, callTable, rangeTable} {
				fmt.Fprintf(&script, "UPDATE %s SET start = start + %s, \"end\" = \"end\" + %[2]s;\n", table, shift)
			}
			execFile(t, copied, script.String())
			shifted = append(shifted, copied)
		}
		got := strings.ReplaceAll(asJSON(t, mustRead(t, Options{}, shifted...)), dir, filepath.Dir(exports[0]))
		if got != want {
			t.Errorf("%s: not the same result", what)
		}
	}
}

// One time beyond belief is no shift.
func TestOneStrangeTimeIsNoShift(t *testing.T) {
	path := newFixture().kernel(0, 1, 1<<60, 1<<60+5, "k").kernel(0, 2, 10, 17, "k").write(t, "x.sqlite")
	trace := mustRead(t, Options{}, path)
	equal(t, "GPU time", trace.Coverage.GPUNS, 7)
}
