package kernel

import (
	"strings"
	"testing"
	"time"
)

// A name of a megabyte, of whatever it is made, is classified within 15 ms where one core is free,
// and not in the 3 to 14 s that functions of any length and number of components take; what
// stands at its beginning still decides, and words among ten thousand bytes of arguments.
func TestEndlessNames(t *testing.T) {
	for _, part := range []string{"a::", "a<b, 3u>", "abcdefgh ", "bw_", "deep_ep::x"} {
		begun := time.Now()
		name := strings.Repeat(part, 1_000_000/len(part))
		if c := Classify(name); c.Phase != PhaseUnknown {
			t.Errorf("%.20s…: %+v", name, c)
		}
		if took := time.Since(begun); took > time.Second && !testing.Short() { // as under the race detector, which takes longer
			t.Errorf("%.20s…: %v", name, took)
		}
		if c := Classify("ncclDevKernel_SendRecv(" + name); c.Phase != PhaseCommunication {
			t.Errorf("ncclDevKernel_SendRecv(%.20s…: %+v", name, c)
		}
	}
	long := "void cutlass::device_kernel<" + strings.Repeat("cute::tuple<int>, ", 60_000) +
		"cutlass::gemm::GroupProblemShape<int> >(int)"
	if c := Classify(long); !c.GEMM {
		t.Errorf("experts behind %d bytes of arguments: %+v", len(long), c)
	}
}
