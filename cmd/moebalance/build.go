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
var stamp = "$Format:commit %h of %cs$"

// build is the version with the commit that the stamp says, or else with what Go recorded of the source: a
// version of the module that names the commit.
func build() string {
	from := stamp
	if info, ok := debug.ReadBuildInfo(); ok && strings.HasPrefix(stamp, "$") {
		from = strings.TrimPrefix(info.Main.Version, "(devel)")
	}
	return strings.TrimSuffix(fmt.Sprintf("%s (%s)", version, from), " ()")
}
