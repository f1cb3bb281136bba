package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/cmd/internal/target"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/testdata"
)

type quickstartOptions struct {
	Dir target.Folder `flag:"dir"`
}

func (o *quickstartOptions) run(c call) error {
	folder := cmp.Or(o.Dir.Path, freeName("moebalance-quickstart"))
	if old, _ := os.ReadDir(folder); len(old) > 0 {
		return usagef("--dir: want a new or empty folder: %q holds files", folder)
	}
	return quickTour.take(c.Context(), folder, again(os.Args[0]), c.OutOrStdout(), c.ErrOrStderr())
}

// take runs the steps in dir and prints what they found, the page's path, and the next commands, with
// again for this program. Commands and their own messages go to stderr.
func (t tour) take(ctx context.Context, dir, again string, stdout, stderr io.Writer) error {
	begun := time.Now()
	if err := os.CopyFS(filepath.Join(dir, "captures"), testdata.Captures); err != nil {
		return fmt.Errorf("unpacking the captures: %w; choose a new folder with --dir", err)
	}
	var found strings.Builder
	for _, s := range t {
		args, _ := launch.Words(strings.ReplaceAll(s.command, "DIR", launch.Quote([]string{filepath.ToSlash(dir)})))
		fmt.Fprintf(stderr, "$ %s %s\n", again, launch.Quote(args))
		if code := run(ctx, args, strings.NewReader(""), io.Discard, stderr); code != exitDone {
			return failf(code, "the command above failed with exit code %d; its files are in %s", code, dir)
		}
		if s.about == "" {
			continue
		}
		result, err := source.ReadResult(args[slices.Index(args, "-o")+1])
		if err != nil {
			return err
		}
		fmt.Fprintf(&found, "%-27s %s\n", s.about+":", render.Of(result).Headline)
	}
	fmt.Fprintf(stderr, "done in %.0f s\n\n", time.Since(begun).Seconds())
	_, err := fmt.Fprintf(stdout, "%s\npage: %s\n\n%s", &found, filepath.Join(dir, "report.html"), next(again))
	return err
}

// next are the commands to go on with, the end of the text of help.
func next(again string) string {
	_, text, _ := strings.Cut(helpText("quickstart"), "\nNext:\n")
	return strings.ReplaceAll(text, "moebalance ", again+" ")
}

// again is how this program, called by a name, can be called once more.
func again(called string) string {
	if strings.Contains(called, "go-build") || strings.HasSuffix(filepath.Dir(called), "-d") { // as 'go run' keeps it
		return "go run ./cmd/moebalance"
	}
	return launch.Quote([]string{called})
}

// tourStep is one command of the tour, and the topic of its answer; steps that only prepare have none.
type tourStep struct {
	about   string
	command string // DIR in it stands for the folder; -o names the result
}

type tour []tourStep

// quickTour is the commands in order. What was recorded on GPUs is of one program, and comes first; what this
// machine made and measured is shown apart.
var quickTour = tour{
	{"recorded on 4 H200s", "compare DIR/captures/campaign-deepseek-ep4.json -o DIR/recorded.json"},
	{"", "compare DIR/captures/deepseek-ep4-ranks/normal.* DIR/captures/deepseek-ep4-ranks/perfect.* --campaign " +
		"DIR/captures/campaign-deepseek-ep4.json --step-tokens 4096 -o DIR/deepseek.json"},
	{"there, by expert counts", "counts DIR/captures/deepseek-ep4-ranks/counts-normal -o DIR/counts.json"},
	{"there, by traces", "trace DIR/captures/deepseek-ep4-ranks/normal.* -o DIR/trace.json"},
	{"", "logits generate --model gpt-oss-120b --ep 8 --tokens 1,8,64,256 --cache DIR/cache"},
	{"made here: logits", "logits verify DIR/cache -o DIR/logits.json"},
	{"run here: CPU workload", "bench --pairs 6 --campaign DIR/campaign -o DIR/bench.json -- moebalance workload " +
		"--steps 6"},
	{"", "report --title 'DeepSeek-V3-like layers on 4 H200s, recorded' -o DIR/report.html DIR/deepseek.json " +
		"DIR/captures/campaign-deepseek-ep4.json DIR/captures/deepseek-ep4-ranks DIR/captures/*/counts-normal"},
	{"", "report --title 'The CPU workload on this machine' -o DIR/workload.html DIR/bench.json DIR/logits.json"},
}
