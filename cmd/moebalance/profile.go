package main

import (
	"cmp"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/moebalance/moebalance/cmd/internal/target"
	"github.com/moebalance/moebalance/compare/bench"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/router/shown"
)

type profileOptions struct {
	launch.Profile
	Folder    target.Folder   `flag:"dir" preset:"moebalance-profile"`
	Perfect   bool            `flag:"perfect"`
	Treatment bench.Treatment `flag:"treatment" preset:"trtllm"`
	DryRun    bool            `flag:"dry-run"`
}

func (o *profileOptions) run(c call) error {
	p := &o.Profile
	p.Variable, p.Windows = launch.ReadWindows(p.Windows, c.args)
	wrong := cmp.Or(p.Check(), launch.CheckProfilable(c.args))
	if o.Perfect {
		if wrong = cmp.Or(wrong, o.Treatment.CheckEngine(c.args)); o.Treatment.Switches {
			wrong = cmp.Or(wrong, checkHookCache(), checkHooked(c.args))
		}
		p.Set, c.args = o.Treatment.Perfect, slices.Concat(c.args, o.Treatment.Flags)
	}
	p.Folder = o.Folder.Path
	folder, err := filepath.Abs(p.Folder)
	if err := cmp.Or(usage(wrong), err); err != nil {
		return err
	}
	if o.DryRun {
		_, err := io.WriteString(c.OutOrStdout(), shown.Masked(p.Script(shown.Mask(c.args))))
		return err
	}
	for _, program := range []string{o.Nsys, c.args[0]} {
		if _, err := exec.LookPath(program); err != nil {
			return usagef("%q is not a program in PATH: install it, or use --dry-run to print the command", program)
		}
	}
	if reports := launch.Reports(folder); len(reports) > 0 {
		return usagef("%s already holds %s: remove the old reports, or choose another folder with --dir",
			o.Folder.Path, filepath.Base(reports[0]))
	}
	p.Folder = folder
	reports, err := p.Record(c.Context(), c.args, c.InOrStdin(), c.OutOrStdout(), c.ErrOrStderr())
	switch {
	case c.Context().Err() != nil:
		return failf(exitInterrupted, "interrupted")
	case err != nil:
		return err
	}
	for _, path := range reports {
		fmt.Fprintln(c.ErrOrStderr(), path)
	}
	return nil
}
