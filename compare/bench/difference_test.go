package bench

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/gain"
)

func TestWordDifferences(t *testing.T) {
	for name, c := range map[string]struct {
		command, accepted string
		want              []string // "name: normal | perfect", "+" in front where declared
	}{
		"no {arm}":               {"run --batch 8", "", nil},
		"accepted by its option": {"run --batch {arm}", "--batch", []string{"+--batch: normal | perfect"}},
		"accepted by a word":     {"run --batch {arm}", "perfect", []string{"+--batch: normal | perfect"}},
		"another accepted":       {"run --batch {arm}", "--log", []string{"--batch: normal | perfect"}},
		"the arm's own file": {"run --save r-{arm}-{launch}.json", "",
			[]string{"--save: r-normal-{launch}.json | r-perfect-{launch}.json"}},
		"accepted as typed": {"run r-{arm}.json", "r-{arm}.json",
			[]string{"+r-perfect.json: r-normal.json | r-perfect.json"}},
	} {
		spec := Spec{Command: Command{Normal: strings.Fields(c.command)},
			Accepted: strings.Fields(c.accepted)}
		var got []string
		undeclared := 0
		for _, d := range spec.wordDifferences(gain.Perfect) {
			text := fmt.Sprintf("%s: %s | %s", d.Name, d.Normal, d.Perfect)
			if d.Declared {
				text = "+" + text
			} else {
				undeclared++
			}
			got = append(got, text)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if (spec.Undeclared() == "") != (undeclared == 0) {
			t.Errorf("%s: undeclared %q", name, spec.Undeclared())
		}
	}
	spec := Spec{Command: Command{Normal: []string{"client"}, Server: []string{"serve", "--eplb={arm}"}}}
	if got := spec.wordDifferences(gain.Perfect); len(got) != 1 || got[0].Name != "--eplb" || got[0].Declared {
		t.Errorf("of a server: %+v", got)
	}
}

// What --arm gives the normal or the perfect arm is one more difference beside the router;
// a build or a further arm is named for it.
func TestArmsOfTheRoutersAddDifferences(t *testing.T) {
	for name, k := range map[string]struct {
		arms     []string
		server   string
		accepted string
		builds   gain.Builds
		arm      gain.Arm
		want     []string // "name: normal | other", "+" in front where declared
	}{
		"of normal": {arms: []string{"normal=--skew 1"}, want: []string{"--skew: --skew | no such word",
			"--skew: 1 | no such word"}},
		"of perfect": {arms: []string{"perfect=--eplb"}, want: []string{"--eplb: no such word | --eplb"}},
		"accepted": {arms: []string{"normal=--skew 1"}, accepted: "--skew",
			want: []string{"+--skew: --skew | no such word", "+--skew: 1 | no such word"}},
		"of both, alike":     {arms: []string{"normal=--skew 1", "perfect=--skew 1"}},
		"of both, otherwise": {arms: []string{"normal=--skew 1", "perfect=--skew 2"}, want: []string{"--skew: 1 | 2"}},
		"of a server": {arms: []string{"normal=--skew 1"}, server: "serve",
			want: []string{"--skew: --skew | no such word", "--skew: 1 | no such word"}},
		"a variable": {arms: []string{"normal=SKEW=1"}, want: []string{"SKEW: 1 | not set"}},
		"of a further arm": {arms: []string{"more=SKEW=1 --eplb"}, arm: "more", want: []string{"+SKEW: not set | 1",
			"+--eplb: no such word | --eplb"}},
		"that perfect lacks": {arms: []string{"more=SKEW=1 --eplb"}},
		"of a build by name": {arms: []string{"after=SKEW=1 --eplb"}, builds: gain.Builds{"before", "after"},
			want: []string{"+SKEW: not set | 1", "+--eplb: no such word | --eplb"}},
	} {
		s := Spec{Command: Command{Normal: []string{"run"}, Server: strings.Fields(k.server)},
			Accepted: strings.Fields(k.accepted), Builds: k.builds}
		for _, text := range k.arms {
			a, err := ParseArm(text)
			if err != nil {
				t.Fatal(err)
			}
			s.Arms = append(s.Arms, a)
		}
		arm := k.arm
		if arm == "" {
			arm = gain.Perfect
		}
		given := func(a gain.Arm) Attempt { return Attempt{Environment: s.arm(a).Env} }
		var got []string
		for _, d := range (&Campaign{Spec: s}).differences(arm, given(gain.Normal), given(arm)) {
			text := fmt.Sprintf("%s: %s | %s", d.Name, d.Normal, d.Perfect)
			if d.Declared {
				text = "+" + text
			}
			got = append(got, text)
		}
		if !slices.Equal(got, k.want) {
			t.Errorf("%s: %q, want %q", name, got, k.want)
		}
	}
}

// runSeen runs a campaign whose commands last long enough for the environment of each to
// be seen: a busy machine may not come to look for a while.
func runSeen(t *testing.T, spec Spec) *Campaign {
	t.Helper()
	for wait := 60 * time.Millisecond; ; wait *= 4 {
		t.Setenv("BENCH_TEST_WAIT", wait.String())
		c := create(t, spec)
		if err := c.Run(context.Background(), testHost("log")); err != nil {
			t.Fatal(err)
		}
		unseen := func(l Launch) bool {
			own := l.Attempts[0].OwnVariables
			return own == nil || l.Arm == gain.Perfect && len(own) == 0
		}
		if wait > 3*time.Second || !slices.ContainsFunc(c.Launches, unseen) {
			return c
		}
	}
}

// A script that sets more variables in one arm and then becomes the benchmark: the
// environment that it was given is the same in both.
func TestVariablesOfTheCommandItself(t *testing.T) {
	needsProc(t)
	spec := testSpec(t, 3)
	self, log := spec.Command.Normal[0], t.TempDir()+"/log"
	script := `if [ "$ENABLE_PERFECT_ROUTER" = 1 ]; then export NCCL_ALGO=Tree HF_TOKEN=hf_$((41+1)) PIN=1; unset GORACE; fi; exec "$0" "$@"`
	spec.Command.Normal = []string{"sh", "-c", script, self, log}
	c := runSeen(t, spec)
	e := Recorded(c)
	const other = "changed by the command (value not recorded)"
	want := []gain.Difference{
		{Kind: "environment", Name: "ENABLE_PERFECT_ROUTER", Normal: "not set", Perfect: "1", Declared: true},
		{Kind: "environment", Name: "TRTLLM_ENABLE_PERFECT_ROUTER", Normal: "not set", Perfect: "1", Declared: true},
		{Kind: "environment", Name: "GORACE", Normal: "as given", Perfect: "removed"},
		{Kind: "environment", Name: "HF_TOKEN", Normal: "as given", Perfect: other},
		{Kind: "environment", Name: "NCCL_ALGO", Normal: "as given", Perfect: "Tree"},
		{Kind: "environment", Name: "PIN", Normal: "as given", Perfect: other},
	}
	if !slices.Equal(e.Differences, want) {
		t.Errorf("differences %+v, want %+v", e.Differences, want)
	}
	for _, file := range []string{storeName, storeName + "-wal"} {
		if text, _ := os.ReadFile(c.Folder + "/" + file); strings.Contains(string(text), "hf_42") {
			t.Errorf("%s holds a secret", file)
		}
	}
	c.Spec.Accepted = []string{"PIN"}
	if d := Recorded(c).Differences[5]; !d.Declared {
		t.Errorf("accepted by name: %+v", d)
	}
}

// A command that takes the switch out of its own environment runs both arms alike.
func TestSwitchUndoneByTheCommand(t *testing.T) {
	needsProc(t)
	spec := testSpec(t, 1)
	spec.Command.Normal = []string{"env", "-u", "ENABLE_PERFECT_ROUTER", spec.Command.Normal[0], t.TempDir() + "/log"}
	c := runSeen(t, spec)
	if said := c.launcherWarnings(); !slices.Equal(said,
		[]string{"the command itself changes ENABLE_PERFECT_ROUTER (removed): both arms may run alike"}) {
		t.Errorf("warnings %q", said)
	}
}

func TestOwnVariables(t *testing.T) {
	given := []string{"A=1", "PATH=/bin", "SHLVL=1", "DROP=x"}
	if got := launch.OwnVariables(nil, given, "id", "/f"); got != nil {
		t.Errorf("of an unknown process %v", got)
	}
	got := launch.OwnVariables([]string{"A=1", "PATH=/opt:/bin", "SHLVL=2", "_=/bin/x", "NCCL_DEBUG_FILE=/f/nccl", "B.0=y"},
		given, "id", "/f")
	if len(got) != 3 || got["DROP"] != "removed" || got["NCCL_DEBUG_FILE"] != "{out}/nccl" ||
		!strings.HasPrefix(got["PATH"], launch.Hashed) || strings.Contains(got["PATH"], "opt") {
		t.Errorf("%v", got)
	}
	if again := launch.OwnVariables([]string{"PATH=/opt:/bin"}, given, "other", "/f"); again["PATH"] == got["PATH"] {
		t.Error("the hash does not depend on the campaign")
	}
}
