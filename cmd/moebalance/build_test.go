package main

import (
	"runtime/debug"
	"testing"
)

func TestVersionNamesTheCommit(t *testing.T) {
	settings := func(pairs ...string) *debug.BuildInfo {
		var info debug.BuildInfo
		for i := 0; i < len(pairs); i += 2 {
			info.Settings = append(info.Settings, debug.BuildSetting{Key: pairs[i], Value: pairs[i+1]})
		}
		return &info
	}
	installed, devel := settings(), settings()
	installed.Main.Version, devel.Main.Version = "v0.1.1-0.20261122090000-0123456789ab", "(devel)"
	const commit = "0123456789abcdef0123456789abcdef01234567"
	for info, want := range map[*debug.BuildInfo]string{
		settings(): version,
		devel:      version,
		installed:  version + " (module v0.1.1-0.20261122090000-0123456789ab)",
		settings("vcs.revision", commit, "vcs.time", "2026-11-22T09:00:00Z", "vcs.modified", "false"): version +
			" (commit 0123456789ab of 2026-11-22)",
		settings("vcs.revision", commit, "vcs.time", "2026-11-23T09:00:00Z", "vcs.modified", "true"): version +
			" (commit 0123456789ab of 2026-11-23, modified)",
	} {
		if got := versionOf(info, "$Format:%h$"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := versionOf(devel, "abcdef012345 of 2026-11-24"); got != version+" (commit abcdef012345 of 2026-11-24)" {
		t.Errorf("stamped by a release: %q", got)
	}
}
