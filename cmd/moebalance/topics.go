package main

import "github.com/spf13/cobra"

// topics are pages of help that belong to no verb: 'moebalance help NAME' prints one.
func topics() []*cobra.Command {
	var pages []*cobra.Command
	for _, name := range []string{"numbers", "formats", "exit-codes", "proof", "loader"} {
		pages = append(pages, command(name, cobra.NoArgs, nil))
	}
	return pages
}
