package capture

import "testing"

func FuzzInstance(f *testing.F) {
	f.Add("aten::add, op_id = 1, seq = 2")
	f.Fuzz(func(t *testing.T, name string) {
		if short := string(withoutInstance([]byte(name))); len(short) > len(name) || name[:len(short)] != short {
			t.Errorf("%q: shortened to %q", name, short)
		}
	})
}
