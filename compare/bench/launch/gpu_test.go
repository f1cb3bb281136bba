package launch

import (
	"testing"

	"github.com/moebalance/moebalance/testdata/require"
)

func TestGPUs(t *testing.T) {
	gpus, err := parseGPUs("0, GPU-aa, NVIDIA H200, 1980, 98\n"+
		"1, GPU-bb, NVIDIA H200, [N/A], [Not Supported]\n",
		"GPU-bb, 77, /usr/bin/python3\nGPU-aa, [Not Found], x\nGPU-zz, 5, y\n")
	require.NoError(t, err)
	if g := gpus[0]; len(gpus) != 2 || g.UUID != "GPU-aa" || g.Name != "NVIDIA H200" || g.ClockMHz != 1980 ||
		g.BusyLooks != 1 {
		t.Errorf("read %+v", gpus)
	}
	if gpus[1].ClockMHz.Defined() || gpus[1].BusyLooks != 0 {
		t.Errorf("what the driver does not know became %+v", gpus[1])
	}
	if len(gpus[0].Processes) != 0 || len(gpus[1].Processes) != 1 ||
		gpus[1].Processes[0] != (GPUProcess{PID: 77, Name: "/usr/bin/python3"}) {
		t.Errorf("processes %+v", gpus)
	}
	for _, text := range []string{"No devices were found", "x, GPU, n, 1, 2"} {
		if _, err := parseGPUs(text, ""); err == nil {
			t.Errorf("%q passed", text)
		}
	}
}
