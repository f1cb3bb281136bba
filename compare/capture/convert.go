package capture

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/moebalance/moebalance/router/input"
)

// Converter turns reports (.nsys-rep, .qdrep) into exports with the profiler's
// own program. The zero value converts nothing.
type Converter struct {
	Nsys  string // path of the program nsys
	Cache string // folder for exports, made when needed
}

// convert returns the export of a report: the one in the cache, named after the
// report's content, or a new one. Nothing is written beside the report. A new export
// evicts those that were not used for cacheAge.
func (c Converter) convert(ctx context.Context, report string) (string, error) {
	sum, err := contentSum(report)
	if err != nil {
		return "", err
	}
	export := filepath.Join(c.Cache, sum+".sqlite")
	now := time.Now()
	if os.Chtimes(export, now, now) == nil { // it is there, and used
		return export, nil
	}
	if err := os.MkdirAll(c.Cache, 0o700); err != nil {
		return "", fmt.Errorf("making the folder for exports of reports: %w", err)
	}
	dir, err := os.MkdirTemp(c.Cache, "export-*")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	made := filepath.Join(dir, "export.sqlite")
	cmd := exec.CommandContext(ctx, c.Nsys, "export", "--type", "sqlite", "--output", made, report)
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", &input.Error{File: report, Position: "exporting it with " + filepath.Base(c.Nsys),
			Found: fmt.Sprintf("%v: %s", err, lastLine(text)), Err: err}
	}
	if _, err := os.Stat(made); err != nil {
		return "", &input.Error{File: report, Position: "exporting it with " + filepath.Base(c.Nsys),
			Expected: "an export", Found: "success, but nothing written"}
	}
	c.evict(now.Add(-cacheAge))
	return export, os.Rename(made, export)
}

// cacheAge is how long an export stays in the cache after its last use.
const cacheAge = 7 * 24 * time.Hour

// evict removes the exports that were last used before a time. What cannot be removed
// stays: the cache is a convenience.
func (c Converter) evict(before time.Time) {
	entries, _ := os.ReadDir(c.Cache)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && filepath.Ext(e.Name()) == ".sqlite" && info.ModTime().Before(before) {
			_ = os.Remove(filepath.Join(c.Cache, e.Name()))
		}
	}
}

func contentSum(path string) (sum string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}

// lastLine is the last line of a program's output that says anything.
func lastLine(text []byte) string {
	lines := strings.Split(strings.TrimSpace(strings.ToValidUTF8(string(text), "\uFFFD")), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
