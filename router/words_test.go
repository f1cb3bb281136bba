package router

import "testing"

func TestCount(t *testing.T) {
	for want, have := range map[string]string{
		"1 layer": Count(1, "layer"), "2 layers": Count(2, "layer"), "0 layers": Count(0, "layer"), "-1 layers": Count(-1, "layer"),
		"1 entry": Count(1, "entry"), "5 entries": Count(int64(5), "entry"), "3 copies": Count(3, "copy"), "2 days": Count(2, "day"),
		"2 launches": Count(2, "launch"), "2 processes": Count(int32(2), "process"), "4 batch sizes": Count(4, "batch size"), "2 boxes": Count(2, "box"), "2 flashes": Count(2, "flash"),
	} {
		if have != want {
			t.Errorf("want %q, have %q", want, have)
		}
	}
}
