package points

import (
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	p, err := Parse("concurrency=64, 1,8")
	if err != nil || p.Name != "concurrency" || !slices.Equal(p.Values, []string{"1", "8", "64"}) {
		t.Errorf("%+v, %v", p, err)
	}
	for _, s := range []string{"", "concurrency", "concurrency=", "=1,2", "c=1", "c=1,1", "c=1,1.0", "c=1,x", "c=0,1",
		"c=-1,2", "c=1,inf", "c=1,NaN", "arm=1,2", "a b=1,2"} {
		if _, err := Parse(s); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("points %q: error %v, want one line", s, err)
		}
	}
}
