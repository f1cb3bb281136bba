package main

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/flags"
	"github.com/moebalance/moebalance/cmd/internal/target"
	"github.com/moebalance/moebalance/compare/bench"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/router/shown"
)

type profileOptions struct {
	launch.Profile
	folder    target.Folder
	perfect   bool
	torch     target.File
	treatment bench.Treatment
	dryRun    bool
}

func profileCmd() *cobra.Command {
	var o profileOptions
	c := command("profile", argCount(1, -1, "a command after --"), o.run)
	c.Annotations[target.RunsCommand] = ""
	f := c.Flags()
	f.StringVar(&o.Windows, "iterations", "",
		"`A-B[,C-D…]`: iterations to record; one report per window and rank (default all)")
	f.StringVar(&o.GraphTrace, "cuda-graph-trace", "node", "level of CUDA graphs: node or graph")
	f.BoolVar(&o.GPUMetrics, "gpu-metrics", false,
		"also sample GPU metrics, on the first rank of each node; the driver must permit it")
	f.StringSliceVar(&o.Trace, "trace", nil, "`LIST`: also record these APIs: python-gil, osrt, cudnn, cublas, mpi, …")
	f.StringArrayVar(&o.Arguments, "nsys-arg", nil,
		"any other `OPTION` of nsys profile, such as --nsys-arg=--sample=none; repeatable")
	o.torch.Bind(c, "torch-trace", "", "also write a PyTorch profiler trace to this `FILE` (TLLM_TORCH_PROFILE_TRACE)")
	f.IntVar(&o.Rank, "rank", -1, "profile this rank only; -1: all")
	f.StringVar(&o.Nsys, "nsys", "nsys", "nsys `PROGRAM`")
	o.folder.Path = "moebalance-profile"
	o.folder.Bind(c, "dir", "", "`DIR` of the reports")
	f.BoolVar(&o.perfect, "perfect", false, "run the perfect arm: set the variables of --treatment")
	flags.Parsed(c, &o.treatment, bench.ParseTreatment, "treatment", "trtllm",
		"switch of the perfect arm: trtllm ("+perfectRouterVariable+"=1), vllm, sglang or env:NAME=VALUE",
		treatmentNames()...)
	f.BoolVar(&o.dryRun, "dry-run", false, "print the command as a shell script and do not run it")
	return c
}

func (o *profileOptions) run(c *cobra.Command, words []string) error {
	o.TorchTrace, o.Program = o.torch.Path, launch.ProgramOf(words)
	if err := o.Check(); err != nil {
		return withCode(exitUsage, fmt.Errorf("profile: %w", err))
	}
	if o.Rank < -1 {
		return usagef("profile: --rank %d: want a rank, or -1 for all", o.Rank)
	}
	if err := launch.CheckProfilable(words); err != nil {
		return withCode(exitUsage, fmt.Errorf("profile: %w", err))
	}
	if o.perfect {
		o.Set, words = o.treatment.Perfect, slices.Concat(words, o.treatment.Flags)
	}
	folder, err := filepath.Abs(o.folder.Path)
	if err != nil {
		return err
	}
	if o.dryRun {
		_, err := io.WriteString(c.OutOrStdout(), o.Script(shown.Mask(words), o.folder.Path, ""))
		return err
	}
	for _, program := range []string{o.Nsys, words[0]} {
		if _, err := exec.LookPath(program); err != nil {
			return withCode(exitUsage,
				fmt.Errorf("profile: %q is not a program in PATH: install it, or use --dry-run to print the command",
					program))
		}
	}
	if reports := launch.Reports(folder); len(reports) > 0 {
		return usagef("profile: %s already holds %s: remove the old reports, or choose another folder with --dir",
			o.folder.Path, filepath.Base(reports[0]))
	}
	reports, err := o.Record(c.Context(), words, folder,
		launch.Streams{In: c.InOrStdin(), Out: c.OutOrStdout(), Err: c.ErrOrStderr()})
	switch {
	case c.Context().Err() != nil:
		return withCode(exitInterrupted, errors.New("profile: interrupted"))
	case err != nil:
		return fmt.Errorf("profile: %w", err)
	}
	for _, path := range reports {
		fmt.Fprintln(c.ErrOrStderr(), path)
	}
	return nil
}
