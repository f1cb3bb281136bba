package main

import (
	"context"
	"errors"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/logits"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func TestVersionAndHelp(t *testing.T) {
	for _, asked := range []string{"--version", "version"} {
		if out, _, code := invoke(t.Context(), asked); code != exitDone || !strings.Contains(out, version) {
			t.Errorf("%s: exit %d, %q", asked, code, out)
		}
	}
	for _, c := range rootCmd().Commands() {
		out, _, code := invoke(t.Context(), c.Name(), "--help")
		if code != exitDone || c.Runnable() != strings.Contains(out, "Usage:") { // topics only have text
			t.Errorf("%s --help: exit %d, %q", c.Name(), code, out)
		}
		if len(c.Short) >= 60 {
			t.Errorf("%s: short help of %d characters, want under 60", c.Name(), len(c.Short))
		}
	}
	named := map[string]output.Document{"trace": render.Trace(&trace.Trace{}, ""), "models": render.Models(nil),
		"logits-plans": render.Plans{}.Document(), "logits-verify": render.VerifiedCache("", logits.Verification{})}
	for _, v := range verbs {
		tables := tablesOf(helpText(v.file))
		for i, table := range named[v.file].Tables {
			if i >= len(tables) || tables[i] != table.Name {
				t.Errorf("help/%s.txt: no table %s among %q", v.file, table.Name, tables)
			}
		}
		for _, table := range regexp.MustCompile(`--table (\w+)`).FindAllStringSubmatch(helpText(v.file), -1) {
			if len(tables) > 0 && !slices.Contains(tables, table[1]) {
				t.Errorf("help/%s.txt: no table %q", v.file, table[1])
			}
		}
	}
}

func each(c *cobra.Command, do func(*cobra.Command)) {
	do(c)
	for _, sub := range c.Commands() {
		each(sub, do)
	}
}

// checkCommand parses a command of this program with its flags, and returns its words and its verb.
func checkCommand(t *testing.T, line string) (words []string, verb *cobra.Command) {
	t.Helper()
	words, err := launch.Words(line)
	at := slices.Index(words, "moebalance")
	if err != nil || at < 0 {
		t.Errorf("%q is no command: %v", line, err)
		return nil, nil
	}
	verb, rest, err := rootCmd().Find(words[at+1:])
	if err == nil {
		err = verb.ParseFlags(rest)
	}
	if err == nil {
		err = verb.ValidateArgs(verb.Flags().Args())
	}
	if err != nil && !errors.Is(err, pflag.ErrHelp) {
		t.Errorf("%q: %v", line, err)
	}
	return words, verb
}

// The examples in help are commands of this program with flags that it has, and their
// inputs are in the repository.
func TestHelpExamples(t *testing.T) {
	each(rootCmd(), func(c *cobra.Command) {
		if c.Example == "" && c.Runnable() && !c.HasSubCommands() && c.Name() != "help" {
			t.Errorf("%s has no example", c.CommandPath())
		}
		for line := range strings.Lines(c.Example) {
			words, found := checkCommand(t, line)
			if found == nil || found.CommandPath() != c.CommandPath() && c.Name() != "workload" {
				t.Errorf("%s: %q runs %v", c.CommandPath(), line, words)
				continue
			}
			for _, word := range words {
				if !strings.HasPrefix(word, "testdata/") {
					continue
				}
				if files, err := filepath.Glob("../../" + word); err != nil || files == nil {
					t.Errorf("%q: %s is not there", line, word)
				}
			}
		}
	})
}

// What is interrupted says so, and no word of Go's.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range [][]string{{"trace", "../../" + loopNormal}, {"logits", "plans", "--model", "e8k2"},
		{"logits", "generate", "--model", "e8k2", "--ep", "2", "--cache", t.TempDir()}} {
		if _, stderr, code := invoke(ctx, args...); code != exitInterrupted || !strings.HasSuffix(stderr, ": interrupted; run it again\n") {
			t.Errorf("%v: exit %d, %q", args, code, stderr)
		}
	}
}
