package tensor

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"strings"
)

// torch is a file of torch.save: a zip of a pickle and raw storages.
type torch struct {
	*zip.Reader
	prefix   string             // of its members
	storages map[string][]int64 // by member: several tensors may view one storage
	used     int64              // bytes of the members read, of at most maxUnpacked
}

const maxUnpacked = 1 << 28

// OpenTorch opens a file of torch.save, and returns what was saved.
func OpenTorch(text []byte) any {
	archive, err := zip.NewReader(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		Fail("want a whole zip, as torch.save writes, have one that is cut or broken")
	}
	for _, m := range archive.File {
		if prefix, ok := strings.CutSuffix(m.Name, "data.pkl"); ok {
			f := &torch{archive, prefix, map[string][]int64{}, 0}
			return unpickle(f.read("data.pkl"), f)
		}
	}
	Fail("want a zip that torch.save wrote, such as expert_distribution_recorder_*.pt of SGLang, " +
		"have another one; of an .npz, save the array of counts [layers, experts] by numpy.save, as .npy")
	return nil
}

// read takes a member whole.
func (t *torch) read(name string) []byte {
	m, err := t.Open(t.prefix + name)
	if err != nil {
		Fail("no member %s: %w", name, err)
	}
	b := Must(io.ReadAll(io.LimitReader(m, maxUnpacked-t.used+1)))
	if t.used += int64(len(b)); t.used > maxUnpacked {
		Fail("want at most %d bytes unpacked, have more", maxUnpacked)
	}
	return Must(b, m.Close())
}

// array reads a tensor, which a pickle describes by its storage ("storage", type, key of a member, …), offset,
// shape, stride, and more.
func (t *torch) array(parts []any) Array {
	parts = append(parts, nil, nil, nil, nil)
	storage, _ := parts[0].([]any)
	offset, isOffset := parts[1].(int64)
	shape, isShape := integers(parts[2])
	stride, isStride := integers(parts[3])
	if len(storage) < 3 || !isOffset || !isShape || !isStride || len(shape) != len(stride) {
		Fail("a tensor of other than storage, offset, shape and stride")
	}
	key := fmt.Sprint(storage[2])
	if t.storages[key] == nil {
		global, _ := storage[1].(pickleGlobal)
		t.storages[key] = decode(t.read("data/"+key), strings.TrimPrefix(string(global), "torch."))
	}
	return View(t.storages[key], offset, shape, stride)
}

// integers reads a tuple of integers.
func integers(v any) ([]int64, bool) {
	items, ok := v.([]any)
	out := make([]int64, len(items))
	for i, item := range items {
		n, isInt := item.(int64)
		out[i], ok = n, ok && isInt
	}
	return out, ok
}
