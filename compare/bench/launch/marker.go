package launch

import "fmt"

// Marker is the beginning of an environment entry that everything a campaign starts
// inherits, so that its processes can be found again.
type Marker string

const markerName = "MOEBALANCE_LAUNCH"

// NewMarker is the marker of the campaign with that ID.
func NewMarker(id string) Marker { return Marker(markerName + "=" + id + "/") }

// Environ are the entries for the processes of a launch. The second keeps the first
// readable: vLLM and SGLang rename their processes with setproctitle, which otherwise
// overwrites the environment that others see (py-setproctitle, README, "Environment
// variables").
func (m Marker) Environ(launch int) []string {
	return []string{fmt.Sprintf("%s%d", m, launch), "SPT_NOENV=1"}
}
