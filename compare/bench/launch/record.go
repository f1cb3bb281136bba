package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// Record runs a command with its streams under nsys, and returns the reports that this wrote into its folder, which
// it makes. Reports must not be there before.
func (p Profile) Record(ctx context.Context, words []string, in io.Reader, out, errs io.Writer) ([]string, error) {
	if err := os.MkdirAll(p.Folder, 0o755); err != nil {
		return nil, err
	}
	wrapped := p.wrap(words)
	cmd := exec.CommandContext(ctx, wrapped[0], wrapped[1:]...)
	cmd.Env = Environ(os.Environ(), p.Variables())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, errs
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // nsys then still writes its report
	cmd.WaitDelay = 5 * time.Minute
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("the command failed: %w", err)
	}
	reports := Reports(p.Folder)
	switch {
	case len(reports) == 0:
		return nil, errors.New("the command succeeded, but nsys wrote no report in " + p.Folder +
			": were the iterations reached?")
	case !slices.ContainsFunc(reports, func(path string) bool { return filepath.Ext(path) != ".qdstrm" }):
		return nil, fmt.Errorf("nsys wrote %s but no report: want a complete nsys installation, with its importer",
			reports[0])
	}
	return reports, nil
}

// Reports lists the reports of a folder. Reports of another run must not be in it: they would count
// as ranks of this run.
func Reports(folder string) []string {
	reports, _ := filepath.Glob(filepath.Join(folder, "report.rank*"))
	return reports
}
