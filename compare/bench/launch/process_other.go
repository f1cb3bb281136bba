//go:build !unix

package launch

import (
	"os"
	"os/exec"
)

// Without process groups only the command itself can be ended.

func ownGroup(*exec.Cmd) {}

func signalGroup(pid int, _ stage) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
	}
}

func groupAlive(int) bool { return false }

// End finds no processes on this system.
func (m Marker) End(Grace) int { return 0 }

func campaignOf(int) string { return "" }

func (p *process) group() Group { return Group{} }

// EndGroups finds no processes on this system.
func EndGroups([]Group, Grace) int { return 0 }
