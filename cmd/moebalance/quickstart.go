package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/cmd/internal/target"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/testdata"
)

func quickstartCmd() *cobra.Command {
	var o struct {
		Dir target.Folder `flag:"dir"`
	}
	return verb("quickstart", argCount(0, 0, "no argument"), &o, func(c *cobra.Command, _ []string) (err error) {
		folder := o.Dir.Path
		if folder == "" {
			if folder, err = newFolder("moebalance-quickstart"); err != nil {
				return err
			}
		}
		if err := o.Dir.CheckEmpty(); err != nil {
			return err
		}
		return quickstart(c.Context(), folder, again(os.Args[0]), tour, c.OutOrStdout(), c.ErrOrStderr())
	})
}

// quickstart runs the steps in dir and prints what they found, the page's path, and the
// next commands, with again for this program. Commands and their own messages go to
// stderr.
func quickstart(ctx context.Context, dir, again string, steps []tourStep, stdout, stderr io.Writer) error {
	begun := time.Now()
	if err := os.CopyFS(filepath.Join(dir, "captures"), testdata.Captures); err != nil {
		return fmt.Errorf("unpacking the captures: %w; choose a new folder with --dir", err)
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	var found strings.Builder
	for _, s := range steps {
		if args := s.in(dir, port); len(args) > 0 {
			fmt.Fprintf(stderr, "$ %s %s\n", again, launch.Quote(args))
			if code := run(ctx, args, strings.NewReader(""), io.Discard, stderr); code != exitDone {
				return withCode(code,
					fmt.Errorf("quickstart: the command above failed with exit code %d; its files are in %s", code,
						dir))
			}
		}
		if s.result == "" {
			continue
		}
		result, err := source.ReadResult(filepath.Join(dir, s.result))
		if err != nil {
			return fmt.Errorf("quickstart: %w", err)
		}
		fmt.Fprintf(&found, "%-27s %s\n", s.about+":", render.Of(result).Answer.Line)
	}
	fmt.Fprintf(stderr, "done in %.0f s\n\n", time.Since(begun).Seconds())
	fmt.Fprintf(&found, "\npage: %s\n\n", filepath.Join(dir, "report.html"))
	found.WriteString(render.TourNext(again))
	_, err = io.WriteString(stdout, found.String())
	return err
}

// again is how this program, called by a name, can be called once more.
func again(called string) string {
	if strings.Contains(called, "go-build") { // where 'go run' keeps what it built
		return "go run ./cmd/moebalance"
	}
	return launch.Quote([]string{called})
}

// tourStep is one command of the tour, and what it found; steps that only
// prepare have no finding.
type tourStep struct {
	args   []string // DIR in an argument stands for the folder, PORT for a free one
	result string   // the file in the folder that the command writes its JSON to
	about  string   // what its answer is on
}

// in is the command's arguments for a folder and a port.
func (s tourStep) in(dir, port string) []string {
	args := make([]string, len(s.args))
	for i, a := range s.args {
		args[i] = strings.NewReplacer("DIR", filepath.ToSlash(dir), "PORT", port).Replace(a)
	}
	return args
}

// freePort is one that nothing listens at.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, errors.Join(err, l.Close())
}

// tour is the commands in order. What was recorded on GPUs is of one program, and comes
// first; what this machine made and measured is shown apart.
var tour = []tourStep{
	{result: "captures/campaign-deepseek-ep4.json", about: "recorded on 4 H200s"},
	{
		args: []string{"compare", "DIR/captures/deepseek-ep4-ranks/normal.*",
			"DIR/captures/deepseek-ep4-ranks/perfect.*", "--campaign", "DIR/captures/campaign-deepseek-ep4.json",
			"--step-tokens", "4096", "--format", "json", "-o", "DIR/deepseek.json"},
	}, {
		args: []string{"counts", "DIR/captures/deepseek-ep4-ranks/counts-normal", "--format", "json", "-o",
			"DIR/counts.json"},
		result: "counts.json", about: "there, by expert counts",
	}, {
		args:   []string{"trace", "DIR/captures/deepseek-ep4-ranks/normal.*", "--format", "json", "-o", "DIR/trace.json"},
		result: "trace.json", about: "there, by traces",
	},
	{args: []string{"logits", "generate", "--model", "gpt-oss-120b", "--ep", "8", "--tokens", "1,8,64,256", "--cache",
		"DIR/cache"}},
	{
		args:   []string{"logits", "verify", "DIR/cache", "--format", "json", "-o", "DIR/logits.json"},
		result: "logits.json", about: "made here: logits",
	}, {
		args: []string{"bench", "--treatment", "hook", "--launches", "3", "--server",
			"moebalance workload --serve localhost:PORT", "--ready", "http://localhost:PORT/health", "--client",
			"moebalance workload --url localhost:PORT --steps 3 --seed {seed}", "--campaign", "DIR/campaign",
			"--format", "json", "-o", "DIR/bench.json"},
		result: "bench.json", about: "run here: CPU workload",
	},
	{args: []string{
		"report", "--title", "DeepSeek-V3-like layers on 4 H200s, recorded", "-o", "DIR/report.html",
		"DIR/captures/campaign-deepseek-ep4.json", "DIR/deepseek.json", "DIR/captures/deepseek-ep4-ranks", "DIR/counts.json",
	}},
	{args: []string{"report", "--title", "The CPU workload on this machine", "-o", "DIR/workload.html", "DIR/bench.json",
		"DIR/logits.json"}},
}
