package tensor

import (
	"archive/zip"
	"runtime"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/testdata/require"
)

// attempted unpickles.
func attempted(pickle string) (v any, err error) {
	err = Attempt(func() { v = unpickle([]byte(pickle), &torch{Reader: &zip.Reader{}}) })
	return v, err
}

// Pickles that would run something in Python, or confuse the reader.
func TestPickleRefusals(t *testing.T) {
	for name, c := range map[string]struct{ pickle, want string }{
		"a system call":        {"\x80\x02cos\nsystem\nX\x02\x00\x00\x00ls\x85R.", `"os.system" is not allowed`},
		"a builtin":            {"\x80\x02cbuiltins\neval\n.", "builtins.eval"},
		"torch's own loader":   {"\x80\x02ctorch\nload\n.", "torch.load"},
		"a call of a string":   {"\x80\x02X\x01\x00\x00\x00a)R.", "not allowed"},
		"an extension":         {"\x80\x02\x82\x01.", "0x82"},
		"an object":            {"\x80\x02ccollections\nOrderedDict\n)\x81.", "0x81"},
		"an empty stack":       {"\x80\x02.", "stack is empty"},
		"no mark":              {"\x80\x02t.", "no mark"},
		"items of a number":    {"\x80\x02K\x01(K\x02e.", "want items of a list or a dictionary"},
		"an unknown memory":    {"\x80\x02h\x05.", "remembered as 5"},
		"an end without stop":  {"\x80\x02K\x01", "too early"},
		"a huge string":        {"\x80\x02X\xff\xff\xff\x7fabc.", "too early"},
		"a negative length":    {"\x80\x02X\xff\xff\xff\xffabc.", "too early"},
		"a long of nine bytes": {"\x80\x02\x8a\x09123456789.", "9 bytes"},
	} {
		if v, err := attempted(c.pickle); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v; want an error with %q", name, v, err, c.want)
		}
	}
}

// Few bytes that would build many objects, each refused before the memory grows.
func TestPickleBombs(t *testing.T) {
	for name, c := range map[string]struct{ pickle, want string }{
		"marks":        {strings.Repeat("(", 9_000_000), "operations"},
		"lists":        {strings.Repeat("]", 9_000_000), "operations"},
		"memories":     {"N" + strings.Repeat("q\x00", 9_000_000), "next memory"},
		"a long list":  {"]q\x00" + strings.Repeat("h\x00a", 4_500_000), "operations"},
		"far memories": {"Nr\xff\xff\xff\x7f", "next memory"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		v, err := attempted(c.pickle)
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v; want an error with %q", name, v, err, c.want)
		}
		if grown := int64(after.TotalAlloc-before.TotalAlloc) - int64(len(c.pickle)); grown > 1<<30 {
			t.Errorf("%s: %d MiB", name, grown>>20)
		}
	}
}

func TestPickleValues(t *testing.T) {
	v, err := attempted(
		"\x80\x02}q\x00(X\x01\x00\x00\x00aq\x01J\xfe\xff\xff\xffX\x01\x00\x00\x00b\x8a\x02\x00\x80X\x01\x00\x00\x00cG\x3f\xf8\x00\x00\x00\x00\x00\x00X\x01\x00\x00\x00d]q\x02(\x88\x89NeX\x01\x00\x00\x00eM\x34\x12K\x07Nu.")
	require.NoError(t, err)
	d := v.(map[string]any)
	list := *d["d"].(*[]any)
	if d["a"] != int64(-2) || d["b"] != int64(-32768) || d["c"] != 1.5 || d["e"] != int64(0x1234) || len(list) != 3 ||
		list[0] != true || list[1] != false || list[2] != nil {
		t.Errorf("%v, list %v", d, list)
	}
}

// Tensors that are none say so when they are read.
func TestNoTensors(t *testing.T) {
	tensor := "ctorch._utils\n_rebuild_tensor_v2\n"
	for name, pickle := range map[string]string{
		"of nothing": tensor + ")R.", "of no storage": tensor + "(K\x01QK\x00))tR.",
		"of floats":  tensor + "((X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000tQK\x00))tR.",
		"of tensors": tensor + "((X\x07\x00\x00\x00storage" + tensor + "X\x01\x00\x00\x000tQK\x00))tR.",
	} {
		item, err := attempted("\x80\x02" + pickle)
		if stored, ok := item.(Stored); ok && err == nil {
			err = Attempt(func() { stored() })
		}
		if err == nil {
			t.Errorf("%s: %v", name, item)
		}
	}
}

func FuzzUnpickle(f *testing.F) {
	f.Add([]byte("\x80\x02}q\x00(X\x01\x00\x00\x00aK\x01u."))
	f.Add([]byte("\x80\x02}X\x01\x00\x00\x00actorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nIntStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x08tQK\x00K\x02K\x04\x86K\x04K\x01\x86tRs."))
	f.Fuzz(func(_ *testing.T, b []byte) { _, _ = attempted(string(b)) })
}

func FuzzNumPy(f *testing.F) {
	f.Add([]byte("\x93NUMPY\x01\x00\x46\x00{'descr': '<u2', 'fortran_order': False, 'shape': (2,), }              \n\x01\x00\x02\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var a Array
		if err := Attempt(func() { a = ParseNumPy(b) }); err == nil && elements(a.Shape) != len(a.Values) {
			t.Errorf("%d values of shape %v", len(a.Values), a.Shape)
		}
	})
}
