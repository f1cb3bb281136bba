package main

import (
	"bytes"
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

	"github.com/moebalance/moebalance/testdata"
)

func quickstartCmd() *cobra.Command {
	dir := "moebalance-quickstart"
	c := &cobra.Command{
		Use:   "quickstart",
		Short: "the whole story on this machine, in two minutes",
		Long: `quickstart runs the other verbs in a row and shows each command line, so that it can
be repeated and changed: it caches balanced routing logits and proves them, reads
real H200 captures that come with the tool, compares their arms, runs six pairs of
the built-in workload here, and draws the report.

Everything goes into one folder. An earlier quickstart's folder is replaced; any
other folder is left alone.`,
		Example: `  moebalance quickstart
  moebalance quickstart --dir /tmp/tour`,
		Args: argCount(0, 0, "no argument"),
		RunE: func(c *cobra.Command, _ []string) error {
			return quickstart(c.Context(), dir, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	c.Flags().StringVar(&dir, "dir", dir, "the `DIR` to write into")
	return c
}

// tourStep is one command of the tour. The first line it prints is what it found.
type tourStep struct {
	finding string // what the finding is about; empty for steps that only prepare
	args    []string
}

// tour is the commands in order. %s in an argument stands for the folder.
var tour = []tourStep{
	{"", []string{"logits", "generate", "--model", "gpt-oss-120b", "--ep", "8", "--tokens", "1,8,64,256", "--cache", "%s/cache"}},
	{"", []string{"logits", "generate", "--model", "deepseek-v3", "--ep", "8", "--tokens", "1,8,64,256", "--cache", "%s/cache"}},
	{"balanced logits", []string{"logits", "verify", "%s/cache"}},
	{"", []string{"logits", "verify", "%s/cache", "--format", "json", "-o", "%s/logits.json"}},
	{"H200 traces, GPT-OSS-like", []string{"trace", "%s/captures/gptoss-ep4-loop/normal.sqlite"}},
	{"its perfect router", []string{"compare", "%s/captures/gptoss-ep4-loop/normal.sqlite", "%s/captures/gptoss-ep4-loop/perfect.sqlite"}},
	{"DeepSeek-V3-like", []string{"compare", "%s/captures/deepseek-ep4-ranks/normal.*", "%s/captures/deepseek-ep4-ranks/perfect.*"}},
	{"built-in workload here", []string{"bench", "--pairs", "6", "--campaign", "%s/campaign", "--", "moebalance", "workload"}},
	{"", []string{"report", "-o", "%s/report.html", "--png", "%s/figures", "--svg", "%s/figures", "%s/logits.json", "%s/campaign", "%s/captures/gptoss-ep4-loop"}},
}

// tourMark is the file that tells a folder of quickstart's from others.
const tourMark = ".moebalance-quickstart"

// quickstart runs the tour in dir and prints what it found: five lines and the
// page's path. Commands and their own messages go to stderr.
func quickstart(ctx context.Context, dir string, stdout, stderr io.Writer) error {
	begun := time.Now()
	if err := freshTourFolder(dir); err != nil {
		return err
	}
	if err := os.CopyFS(filepath.Join(dir, "captures"), testdata.Captures); err != nil {
		return fmt.Errorf("unpacking the captures: %w", err)
	}
	var found strings.Builder
	for _, s := range tour {
		args := make([]string, len(s.args))
		for i, a := range s.args {
			args[i] = strings.ReplaceAll(a, "%s", filepath.ToSlash(dir))
		}
		fmt.Fprintf(stderr, "$ moebalance %s\n", strings.Join(args, " "))
		var out bytes.Buffer
		if code := run(ctx, args, nil, &out, stderr); code != exitDone {
			return withCode(code, fmt.Errorf("quickstart stopped: the command above ended with exit code %d; what was made so far is in %s", code, dir))
		}
		if s.finding != "" {
			line, _, _ := strings.Cut(out.String(), "\n")
			fmt.Fprintf(&found, "%-26s %s\n", s.finding+":", line)
		}
	}
	fmt.Fprintf(stderr, "done in %.0f s\n\n", time.Since(begun).Seconds())
	fmt.Fprintf(&found, "report: %s\n", filepath.Join(dir, "report.html"))
	_, err := io.WriteString(stdout, found.String())
	return err
}

// freshTourFolder makes dir empty and marked. Only a folder that an earlier
// tour marked is cleared; one with other content is refused.
func freshTourFolder(dir string) error {
	mark := filepath.Join(dir, tourMark)
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0:
	case err != nil:
		return err
	default:
		if _, err := os.Stat(mark); err != nil {
			return usagef("quickstart: %q exists and is not from an earlier quickstart: want a new folder, choose one with --dir", dir)
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(mark, nil, 0o644)
}
