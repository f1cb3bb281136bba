package gain

import (
	"encoding/json"
	"strings"
	"testing"
)

// builds is a campaign of two builds, without proof.
func builds(gains ...float64) Recorded {
	c := valid(paired(gains...))
	c.Proof, c.Builds, c.Threshold = nil, [2]Arm{"before", "after"}, 0
	c.Differences = []Difference{{Kind: "argument", Name: "command", Normal: "v1", Perfect: "v2", Declared: true}}
	return c
}

func TestBuilds(t *testing.T) {
	for want, gains := range map[Verdict][]float64{
		Faster:       {0.05, 0.051, 0.052, 0.05, 0.051, 0.052},
		Slower:       {-0.05, -0.051, -0.052, -0.05, -0.051, -0.052},
		Equal:        {0.001, -0.001, 0.001, 0.001, -0.001, 0.001},
		Inconclusive: {0.1, -0.1, 0.1, 0.1, -0.1, 0.1},
	} {
		r := Judge(builds(gains...))
		if r.Verdict != want {
			t.Errorf("verdict %s, want %s", r.Verdict, want)
		}
		text, _ := json.Marshal(r.Checks)
		for _, word := range []string{"balance", "perfect", "normal", "router"} {
			if strings.Contains(string(text), word) {
				t.Errorf("%s: %q speaks of %s", want, text, word)
			}
		}
	}
}
