package tensor

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/moebalance/moebalance/logits/safetensors"
)

// Torch is a file of torch.save: a zip of a pickle and raw storages.
type Torch struct {
	Root     any // a Dict, a tensor, …
	prefix   string
	members  map[string]*zip.File
	storages map[string][]byte // by member: several tensors may view one storage
	used     int64             // bytes of the members read, of at most maxUnpacked
}

const maxUnpacked = 1 << 28

// storageTypes are the types of torch's storages. Those of floats occur beside
// the counts; they are named but never read.
var storageTypes = map[string]safetensors.DType{
	"ByteStorage": safetensors.U8, "CharStorage": safetensors.I8, "ShortStorage": safetensors.I16,
	"IntStorage": safetensors.I32, "LongStorage": safetensors.I64,
	"HalfStorage": "", "BFloat16Storage": "", "FloatStorage": "", "DoubleStorage": "", "BoolStorage": "",
}

// OpenTorch opens a file of torch.save.
func OpenTorch(members []*zip.File) (*Torch, error) {
	f := &Torch{members: map[string]*zip.File{}, storages: map[string][]byte{}}
	found := false
	for _, m := range members {
		f.members[m.Name] = m
		if prefix, ok := strings.CutSuffix(m.Name, "data.pkl"); ok && !found {
			f.prefix, found = prefix, true
		}
	}
	if !found {
		return nil, errors.New("want a zip that torch.save wrote, such as expert_distribution_recorder_*.pt of SGLang, have " +
			"another one; of an .npz, save the array of counts [layers, experts] by numpy.save, as .npy")
	}
	if order, ok := f.members[f.prefix+"byteorder"]; ok {
		b, err := f.read(order)
		if err != nil {
			return nil, err
		}
		if s := strings.TrimSpace(string(b)); s != "little" {
			return nil, fmt.Errorf("want little byte order, have %q", s)
		}
	}
	b, err := f.read(f.members[f.prefix+"data.pkl"])
	if err != nil {
		return nil, err
	}
	f.Root, err = unpickle(b)
	return f, err
}

// read takes a member whole.
func (f *Torch) read(m *zip.File) (b []byte, err error) {
	r, err := m.Open()
	if err != nil {
		return nil, fmt.Errorf("member %s: %w", m.Name, err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	b, err = io.ReadAll(io.LimitReader(r, maxUnpacked-f.used+1))
	if err != nil {
		return nil, fmt.Errorf("member %s: %w", m.Name, err)
	}
	if f.used += int64(len(b)); f.used > maxUnpacked {
		return nil, fmt.Errorf("member %s: want at most %d bytes unpacked, have more", m.Name, maxUnpacked)
	}
	return b, nil
}

// storage reads the bytes of a storage, once.
func (f *Torch) storage(key string) ([]byte, error) {
	if b, ok := f.storages[key]; ok {
		return b, nil
	}
	member, ok := f.members[f.prefix+"data/"+key]
	if !ok {
		return nil, fmt.Errorf("no storage %q", key)
	}
	b, err := f.read(member)
	if err == nil {
		f.storages[key] = b
	}
	return b, err
}

// Array reads a tensor of integers in the file.
func (f *Torch) Array(item any) (Array, error) {
	t, ok := item.(pickleTensor)
	if !ok || len(t) < 4 {
		return Array{}, errors.New("want a tensor")
	}
	storage, _ := t[0].(pickleStorage)
	offset, isOffset := t[1].(int64)
	shape, isShape := integers(t[2])
	stride, isStride := integers(t[3])
	if len(storage) < 3 || !isOffset || !isShape || !isStride || len(shape) != len(stride) {
		return Array{}, errors.New("a tensor of other than storage, offset, shape and stride")
	}
	global, _ := storage[1].(pickleGlobal)
	name := strings.TrimPrefix(string(global), "torch.")
	dtype := storageTypes[name]
	if dtype == "" {
		return Array{}, fmt.Errorf("want a tensor of integers, have a %s", name)
	}
	raw, err := f.storage(fmt.Sprint(storage[2]))
	if err != nil {
		return Array{}, err
	}
	return strided(raw, dtype, offset, shape, stride)
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
