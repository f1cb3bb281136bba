package capture

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/moebalance/moebalance/router/input"
)

// Converter turns reports (.nsys-rep, .qdrep) into exports with the profiler's
// own program. The zero value converts nothing.
type Converter struct {
	Nsys string // path of the program nsys
}

// exportOf gives the export to open for path: path itself, or what the converter
// makes of a report, in a folder of its own that done removes.
func exportOf(ctx context.Context, path string, c Converter) (export string, done func(), err error) {
	if info, err := os.Stat(path); err != nil || info.IsDir() || !isReport(path) || c.Nsys == "" {
		return path, func() {}, nil // opening it tells what is wrong
	}
	dir, err := os.MkdirTemp("", "moebalance-export-*")
	if err != nil {
		return "", nil, err
	}
	done = func() { _ = os.RemoveAll(dir) }
	export = filepath.Join(dir, "export.sqlite")
	text, err := exec.CommandContext(ctx, c.Nsys, "export", "--type", "sqlite", "--output", export, path).CombinedOutput()
	fault := &input.Error{File: path, Position: "exporting it with " + filepath.Base(c.Nsys)}
	if err != nil {
		fault.Found, fault.Err = fmt.Sprintf("%v: %s", err, lastLine(text)), err
	} else if _, err := os.Stat(export); err != nil {
		fault.Expected, fault.Found = "an export", "success, but nothing written"
	} else {
		return export, done, nil
	}
	done()
	return "", nil, fault
}

// lastLine is the last line of a program's output that says anything.
func lastLine(text []byte) string {
	lines := strings.Split(strings.TrimSpace(strings.ToValidUTF8(string(text), "\uFFFD")), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
