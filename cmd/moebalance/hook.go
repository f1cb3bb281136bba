package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/cmd/internal/target"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/logits"
	"github.com/moebalance/moebalance/logits/hook"
)

type hookOptions struct {
	Folder target.Folder `flag:"output,o"`
}

func (o *hookOptions) run(c call) error {
	if o.Folder.Path == "" {
		return usagef("want -o, the folder to write")
	}
	path, err := writeHook(&o.Folder)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.OutOrStdout(), "export PYTHONPATH=%s${PYTHONPATH:+:$PYTHONPATH}\n", launch.Quote([]string{path}))
	return nil
}

// writeHook writes the hook to a folder, and returns its absolute path.
func writeHook(folder *target.Folder) (string, error) {
	for _, f := range hook.Files(version) {
		write := func(w io.Writer) error { _, err := w.Write(f.Text); return err }
		if err := folder.Write(f.Name, write); err != nil {
			return "", err
		}
	}
	return filepath.Abs(folder.Path)
}

// hookEnviron is the environment of launches with the hook, which is written into the campaign, a store of ours, and
// comes first in PYTHONPATH.
func hookEnviron(campaign string) ([]string, error) {
	if err := checkHookCache(); err != nil {
		return nil, err
	}
	known := os.Getenv("PYTHONPATH")
	ours := target.Folder{File: target.File{Path: filepath.Join(campaign, "hook")}}
	folder, err := writeHook(&ours)
	if err != nil {
		return nil, err
	}
	return launch.Environ(os.Environ(), map[string]string{"PYTHONPATH": strings.TrimSuffix(
		folder+string(filepath.ListSeparator)+known, string(filepath.ListSeparator))}), nil
}

// checkHookCache is an error unless the environment names a cache for the hook.
func checkHookCache() error {
	if dir := os.Getenv("MOEBALANCE_CACHE"); !logits.IsCache(dir) {
		return usagef("--treatment hook: want a cache of 'moebalance logits generate' in MOEBALANCE_CACHE, have %q",
			dir)
	}
	return nil
}

// checkHooked is an error unless PYTHONPATH has the hook, or a command sets it for itself.
func checkHooked(command []string) error {
	if slices.ContainsFunc(command, func(word string) bool { return strings.Contains(word, "PYTHONPATH=") }) ||
		slices.ContainsFunc(filepath.SplitList(os.Getenv("PYTHONPATH")), func(dir string) bool {
			_, err := os.Stat(filepath.Join(dir, "moebalance_hook"))
			return err == nil
		}) {
		return nil
	}
	return usagef("--treatment hook: want the hook in PYTHONPATH: 'moebalance hook -o hook' writes it, and prints the " +
		"export")
}
