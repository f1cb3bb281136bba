package answer

import (
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/place"
)

// What is lacking first: a verdict without traces asks for them, and one of builds for no balance.
func TestFurther(t *testing.T) {
	gains := Verdict(gain.Significant)
	for _, c := range []struct {
		verdict Verdict
		with    Evidence
		want    string // the command begins so
	}{
		{gains, Evidence{}, "moebalance profile"},
		{gains, Evidence{Traces: true}, "moebalance place --judge"},
		{gains, Evidence{Builds: true}, "moebalance bench --arms"},
		{Even, Evidence{Traces: true, Balanced: true}, "moebalance compare NORMAL PERFECT"},
		{Even, Evidence{Traces: true}, ""},
		{Verdict(place.NotNow), Evidence{}, ""},
		{Complete, Evidence{Cache: true}, "moebalance bench --treatment hook"},
		{NoVerdict, Evidence{Traces: true}, "moebalance bench --"},
	} {
		s := Answer{Verdict: c.verdict}.Further(c.with)
		if !strings.HasPrefix(s.Command, c.want) || (s.Command == "") != (c.want == "") || s.Text == "" {
			t.Errorf("%s, %+v: have %q, want %s …", c.verdict, c.with, s, c.want)
		}
	}
}
