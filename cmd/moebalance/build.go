package main

import (
	"fmt"
	"runtime/debug"
	"strings"
)

// version is the tool's own version, written into every JSON result.
const version = "0.1.0"

// stamp is the commit and its date as .ci/release says them, for builds of which Go records none.
// In an archive of the source git writes it (.gitattributes).
var stamp = "$Format:%h of %cs$"

// build is the version with what Go recorded of the source: the commit and its date for a
// build in a checkout, the module's version for 'go install …@latest', else the stamp.
func build() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return versionOf(info, stamp)
}

func versionOf(info *debug.BuildInfo, stamp string) string {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	commit, date, module := settings["vcs.revision"], settings["vcs.time"], info.Main.Version
	switch {
	case len(commit) >= 12 && len(date) >= 10:
		stamp = commit[:12] + " of " + date[:10]
		if settings["vcs.modified"] == "true" {
			stamp += ", modified"
		}
	case strings.HasPrefix(stamp, "$") && module != "" && module != "(devel)":
		return fmt.Sprintf("%s (module %s)", version, module)
	}
	if strings.HasPrefix(stamp, "$") {
		return version
	}
	return fmt.Sprintf("%s (commit %s)", version, stamp)
}
