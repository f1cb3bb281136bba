package gain

import (
	"encoding/json"
	"regexp"
	"testing"
)

// Two builds are compared without proof and without a word of balance.
func TestBuilds(t *testing.T) {
	c := valid(paired(0.05, 0.051, 0.052, 0.05, 0.051, 0.052))
	c.Proof, c.Builds, c.Threshold = nil, [2]Arm{"before", "after"}, 0
	c.Differences = []Difference{{Kind: "argument", Name: "command", Normal: "v1", Perfect: "v2", Declared: true}}
	r := Judge(c)
	text, _ := json.Marshal(r.Checks)
	if r.Verdict != Faster || regexp.MustCompile("balance|perfect|normal|router").Match(text) {
		t.Errorf("%s, checks %s", r.Verdict, text)
	}
}
