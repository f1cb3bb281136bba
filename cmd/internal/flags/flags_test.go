package flags

import (
	"math"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestShare(t *testing.T) {
	for text, want := range map[string]float64{"10%": 0.1, " 10 % ": 0.1, "0.1": 0.1, "0.5%": 0.005, "1": 1, "0": 0,
		"250%": 2.5, "1000%": 10} {
		if s, err := parseShare(text); err != nil || math.Abs(s-want) > 1e-15 {
			t.Errorf("%q is %v, %v; want %v", text, s, err, want)
		}
	}
	for _, text := range []string{"", "x", "-1", "NaN", "10%%", "1e9", "10", "250", "1001%", "2000%"} {
		if _, err := parseShare(text); err == nil {
			t.Errorf("%q passed", text)
		}
	}
}

// A field has its preset until its flag is given, a pointer is nil until then, and only a list is given twice.
func TestBind(t *testing.T) {
	type Inner struct {
		Limit *float64 `flag:"limit" in:"%"`
	}
	type options struct {
		Share float64  `flag:"share" in:"%" preset:"10%"`
		Sizes []int    `flag:"sizes,s" preset:"1,2"`
		Deep  bool     `flag:"deep"`
		List  []string `flag:"list"`
		Inner
	}
	bound := func(args ...string) (options, error) {
		var o options
		c := &cobra.Command{}
		Bind(c, &o, func(name string) string { return name })
		return o, c.ParseFlags(args)
	}
	if o, err := bound(); err != nil || o.Share != 0.1 || len(o.Sizes) != 2 || o.Limit != nil {
		t.Errorf("presets: %+v, %v", o, err)
	}
	var o options
	c := &cobra.Command{}
	Bind(c, &o, func(name string) string { return "`N`: a " + name })
	err := c.ParseFlags([]string{"--limit", "5%", "-s", "3-5", "--deep", "--list", "a", "--list", "b"})
	if err != nil || o.Limit == nil || *o.Limit != 0.05 || len(o.Sizes) != 3 || !o.Deep || len(o.List) != 2 {
		t.Errorf("given: %+v, %v", o, err)
	}
	names, typed := Given(c, "deep")
	if strings.Join(names, " ") != "--limit --list --sizes" ||
		strings.Join(typed, " ") != "--limit 5% --list a --list b --sizes 3-5" ||
		!strings.Contains(c.Flags().FlagUsages(), "--limit N") {
		t.Errorf("given %v, typed again %v", names, typed)
	}
	if _, err := bound("--share", "1%", "--share", "2%"); err == nil || !strings.Contains(err.Error(), "want one value") {
		t.Errorf("twice: %v", err)
	}
}
