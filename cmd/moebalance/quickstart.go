package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/cmd/internal/target"
	"github.com/moebalance/moebalance/cmd/internal/workload"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/testdata"
)

func quickstartCmd() *cobra.Command {
	dir := target.Folder{Path: "moebalance-quickstart"}
	c := command("quickstart", argCount(0, 0, "no argument"), func(c *cobra.Command, _ []string) error {
		return quickstart(c.Context(), dir.Path, tour, c.OutOrStdout(), c.ErrOrStderr())
	})
	dir.Bind(c, "dir", "", "output `DIR`")
	return c
}

// tourMark is the file that tells a folder of quickstart's from others.
const tourMark = ".moebalance-quickstart"

// quickstart runs the steps in dir and prints what they found and the page's
// path. Commands and their own messages go to stderr.
func quickstart(ctx context.Context, dir string, steps []tourStep, stdout, stderr io.Writer) error {
	begun := time.Now()
	if err := freshTourFolder(dir); err != nil {
		return err
	}
	if err := os.CopyFS(filepath.Join(dir, "captures"), testdata.Captures); err != nil {
		return fmt.Errorf("unpacking the captures: %w", err)
	}
	var found strings.Builder
	for _, s := range steps {
		args := s.in(dir)
		fmt.Fprintf(stderr, "$ moebalance %s\n", launch.Quote(args))
		if code := run(ctx, args, strings.NewReader(""), io.Discard, stderr); code != exitDone {
			return withCode(code, fmt.Errorf("quickstart: the command above failed with exit code %d; its files are in %s", code, dir))
		}
		if s.found == nil {
			continue
		}
		result, err := source.ReadResult(filepath.Join(dir, s.result))
		if err != nil {
			return fmt.Errorf("quickstart: %w", err)
		}
		fmt.Fprintf(&found, "%-29s %s\n", s.about+":", s.found(result))
	}
	fmt.Fprintf(stderr, "done in %.0f s\n\n", time.Since(begun).Seconds())
	fmt.Fprintf(&found, "report: %s\n", filepath.Join(dir, "report.html"))
	_, err := io.WriteString(stdout, found.String())
	return err
}

// tourFiles is all that a tour leaves in its folder.
var tourFiles = []string{"captures", "cache", "campaign", "figures", "logits.json", "trace.json", "gptoss.json", "deepseek.json", "bench.json", "report.html"}

// freshTourFolder makes a marked folder without the files of an earlier tour. One
// that no tour marked is refused unless it is empty.
func freshTourFolder(dir string) error {
	mark := filepath.Join(dir, tourMark)
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0:
	case err != nil:
		return err
	default:
		if _, err := os.Stat(mark); err != nil {
			return usagef("quickstart: %q exists and is not from an earlier quickstart: choose a new folder with --dir", dir)
		}
		for _, name := range tourFiles {
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(mark, nil, 0o644)
}

// tourStep is one command of the tour, and what it found; steps that only
// prepare have no finding.
type tourStep struct {
	args   []string // DIR in an argument stands for the folder
	result string   // the file in the folder that the command writes its JSON to
	about  string
	found  func(source.Item) string // from that result, in one line
}

// in is the command's arguments for a folder.
func (s tourStep) in(dir string) []string {
	args := make([]string, len(s.args))
	for i, a := range s.args {
		args[i] = strings.ReplaceAll(a, "DIR", filepath.ToSlash(dir))
	}
	return args
}

// tour is the commands in order.
var tour = []tourStep{
	{args: []string{"logits", "generate", "--model", "gpt-oss-120b", "--ep", "8", "--tokens", "1,8,64,256", "--cache", "DIR/cache"}},
	{args: []string{"logits", "generate", "--model", "deepseek-v3", "--ep", "8", "--tokens", "1,8,64,256", "--cache", "DIR/cache"}},
	{
		args:   []string{"logits", "verify", "DIR/cache", "--format", "json", "-o", "DIR/logits.json"},
		result: "logits.json", about: "balanced logits", found: render.TourBalance,
	}, {
		args:   []string{"trace", "DIR/captures/gptoss-ep4-loop/normal.sqlite", "--format", "json", "-o", "DIR/trace.json"},
		result: "trace.json", about: "GPT-OSS-like on 4 H200s", found: render.TourStraggler,
	}, {
		args:   []string{"compare", "DIR/captures/gptoss-ep4-loop/normal.sqlite", "DIR/captures/gptoss-ep4-loop/perfect.sqlite", "--format", "json", "-o", "DIR/gptoss.json"},
		result: "gptoss.json", about: "the same, balanced", found: render.TourDifference,
	}, {
		args:   []string{"compare", "DIR/captures/deepseek-ep4-ranks/normal.*", "DIR/captures/deepseek-ep4-ranks/perfect.*", "--format", "json", "-o", "DIR/deepseek.json"},
		result: "deepseek.json", about: "DeepSeek-V3-like, balanced", found: render.TourDifference,
	}, {
		args:   []string{"bench", "--pairs", "6", "--arm", "greedy=--placement greedy", "--campaign", "DIR/campaign", "--format", "json", "-o", "DIR/bench.json", "--", "moebalance", "workload"},
		result: "bench.json", about: "workload here, by " + workload.DefaultClock() + " time", found: render.TourGain,
	},
	{args: []string{
		"report", "--title", "Two programs: a campaign of the built-in workload, and traces of a GPT-OSS-like model on H200s",
		"-o", "DIR/report.html", "--png", "DIR/figures", "--svg", "DIR/figures", "DIR/logits.json", "DIR/bench.json", "DIR/captures/gptoss-ep4-loop",
	}},
}
