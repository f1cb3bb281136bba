package tensor

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// torch is a file of torch.save: a zip of a pickle and raw storages.
type torch struct {
	prefix   string
	members  map[string]*zip.File
	storages map[string][]int64 // by member: several tensors may view one storage
	used     int64              // bytes of the members read, of at most maxUnpacked
}

const maxUnpacked = 1 << 28

// OpenTorch opens a file of torch.save, and returns what was saved.
func OpenTorch(text []byte) (any, error) {
	archive, err := zip.NewReader(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		return nil, errors.New("want a whole zip, as torch.save writes, have one that is cut or broken")
	}
	f := &torch{members: map[string]*zip.File{}, storages: map[string][]int64{}}
	for _, m := range archive.File {
		f.members[m.Name] = m
		if prefix, ok := strings.CutSuffix(m.Name, "data.pkl"); ok {
			f.prefix = prefix
		}
	}
	if f.members[f.prefix+"data.pkl"] == nil {
		return nil, errors.New("want a zip that torch.save wrote, such as expert_distribution_recorder_*.pt of SGLang, " +
			"have another one; of an .npz, save the array of counts [layers, experts] by numpy.save, as .npy")
	}
	b, err := f.read("data.pkl")
	if err != nil {
		return nil, err
	}
	return unpickle(b, f)
}

// read takes a member whole.
func (f *torch) read(name string) ([]byte, error) {
	m, ok := f.members[f.prefix+name]
	if !ok {
		return nil, fmt.Errorf("no member %q", name)
	}
	r, err := m.Open()
	if err != nil {
		return nil, fmt.Errorf("member %s: %w", name, err)
	}
	b, err := io.ReadAll(io.LimitReader(r, maxUnpacked-f.used+1))
	if f.used += int64(len(b)); f.used > maxUnpacked {
		err = fmt.Errorf("want at most %d bytes unpacked, have more", maxUnpacked)
	}
	if err = errors.Join(err, r.Close()); err != nil {
		return nil, fmt.Errorf("member %s: %w", name, err)
	}
	return b, nil
}

// array reads a tensor, which a pickle describes by its storage ("storage", type, key, …), offset,
// shape, stride, and more.
func (f *torch) array(parts []any) (Array, error) {
	parts = append(parts, nil, nil, nil, nil)
	storage, _ := parts[0].(pickleStorage)
	offset, isOffset := parts[1].(int64)
	shape, isShape := integers(parts[2])
	stride, isStride := integers(parts[3])
	if len(storage) < 3 || !isOffset || !isShape || !isStride || len(shape) != len(stride) {
		return Array{}, errors.New("a tensor of other than storage, offset, shape and stride")
	}
	key := fmt.Sprint(storage[2])
	if f.storages[key] == nil {
		global, _ := storage[1].(pickleGlobal)
		raw, err := f.read("data/" + key)
		if err != nil {
			return Array{}, err
		}
		if f.storages[key], err = decode(raw, strings.TrimPrefix(string(global), "torch.")); err != nil {
			return Array{}, err
		}
	}
	return view(f.storages[key], offset, shape, stride)
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
