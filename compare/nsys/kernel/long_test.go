package kernel

import (
	"strings"
	"testing"
	"time"
)

// A name of a megabyte, of whatever it is made, is classified in a moment; what stands at its
// beginning still decides.
func TestEndlessNames(t *testing.T) {
	for _, part := range []string{"a::", "a<b, 3u>", "abcdefgh ", "bw_"} {
		begun := time.Now()
		name := strings.Repeat(part, 1_000_000/len(part))
		if c := Classify(name); c.Phase != PhaseUnknown {
			t.Errorf("%.20s…: %+v", name, c)
		}
		if took := time.Since(begun); took > 2*time.Second {
			t.Errorf("%.20s…: %v", name, took)
		}
		if c := Classify("ncclDevKernel_SendRecv(" + name); c.Phase != PhaseCommunication {
			t.Errorf("ncclDevKernel_SendRecv(%.20s…: %+v", name, c)
		}
	}
}
