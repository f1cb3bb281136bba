package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/target"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/logits"
	"github.com/moebalance/moebalance/logits/hook"
)

type hookOptions struct {
	Folder target.Folder `flag:"output,o"`
}

func (o *hookOptions) run(c *cobra.Command, _ []string) error {
	if o.Folder.Path == "" {
		return usagef("want -o, the folder to write")
	}
	for _, f := range hook.Files(version) {
		write := func(w io.Writer) error { _, err := w.Write(f.Text); return err }
		if err := o.Folder.Write(f.Name, write); err != nil {
			return err
		}
	}
	path, err := filepath.Abs(o.Folder.Path)
	fmt.Fprintf(c.OutOrStdout(), "export PYTHONPATH=%s${PYTHONPATH:+:$PYTHONPATH}\n", launch.Quote([]string{path}))
	return err
}

// hookEnviron is the environment of launches with the hook. Where PYTHONPATH has none,
// it is written into the campaign, a store of ours.
func hookEnviron(campaign string) ([]string, error) {
	if err := checkHookCache(); err != nil {
		return nil, err
	}
	known := os.Getenv("PYTHONPATH")
	if hook.On(known) {
		return os.Environ(), nil
	}
	folder, err := filepath.Abs(filepath.Join(campaign, "hook"))
	if err != nil {
		return nil, err
	}
	for _, f := range hook.Files(version) {
		path := filepath.Join(folder, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, f.Text, 0o644); err != nil {
			return nil, err
		}
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
