package capture

import (
	"fmt"
	"slices"
)

// The arms that a switch in the environment, or a range of the hook, names.
const (
	Normal  = "normal"
	Perfect = "perfect"
)

// Arm says which arm a capture is of, and why.
func (m *Metadata) Arm() (arm, evidence string) {
	// Absence proves nothing: other engines have other switches.
	evidence = "no environment variables are recorded"
	if m.Variables > 0 {
		evidence = fmt.Sprintf("no router switch is among the %d recorded environment variables", m.Variables)
	}
	for i, name := range armVariables {
		value, recorded := m.Environment[name] // TensorRT-LLM takes "1" and nothing else; "true" leaves its router as it is
		if value == "1" || i > 0 && slices.Contains([]string{"true", "True", "uniform_random"}, value) {
			return Perfect, name + "=" + value
		} else if recorded && arm == "" {
			arm, evidence = Normal, name+"="+value
		}
	}
	return arm, evidence
}
