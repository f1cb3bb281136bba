package main

import (
	"fmt"
	"runtime/debug"
)

// version is the tool's own version, written into every JSON result.
const version = "0.1.0"

// build is the version with what Go recorded of the source: the commit and its date for a
// build in a checkout, the module's version for 'go install …@latest', else nothing.
func build() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version
	}
	return versionOf(info)
}

func versionOf(info *debug.BuildInfo) string {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	commit, date := settings["vcs.revision"], settings["vcs.time"]
	if len(commit) < 12 || len(date) < 10 {
		if module := info.Main.Version; module != "" && module != "(devel)" {
			return fmt.Sprintf("%s (module %s)", version, module)
		}
		return version
	}
	modified := ""
	if settings["vcs.modified"] == "true" {
		modified = ", modified"
	}
	return fmt.Sprintf("%s (commit %s of %s%s)", version, commit[:12], date[:10], modified)
}
