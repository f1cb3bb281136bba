package counts

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/moebalance/moebalance/logits/safetensors"
)

// torchFile is a file of torch.save: a zip of a pickle and raw storages.
type torchFile struct {
	root     *pickleDict
	prefix   string
	members  map[string]*zip.File
	storages map[string][]byte // by member: several tensors may view one storage
	unpacker
}

// unpacker reads members of a zip, up to a total size.
type unpacker struct{ budget int64 } // bytes that may still be read

// storageTypes are the types of torch's storages. Those of floats occur beside
// the counts; they are named but never read.
var storageTypes = map[string]safetensors.DType{
	"ByteStorage": safetensors.U8, "CharStorage": safetensors.I8, "ShortStorage": safetensors.I16,
	"IntStorage": safetensors.I32, "LongStorage": safetensors.I64,
	"HalfStorage": "", "BFloat16Storage": "", "FloatStorage": "", "DoubleStorage": "", "BoolStorage": "",
}

// openTorch opens a file whose pickle is a dictionary.
func openTorch(members []*zip.File) (*torchFile, error) {
	f := &torchFile{members: map[string]*zip.File{}, storages: map[string][]byte{}, unpacker: unpacker{maxUnpacked}}
	found := false
	for _, m := range members {
		f.members[m.Name] = m
		if prefix, ok := strings.CutSuffix(m.Name, "data.pkl"); ok && !found {
			f.prefix, found = prefix, true
		}
	}
	if !found {
		return nil, errors.New("a zip without data.pkl, so not of torch.save")
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
	root, err := unpickle(b)
	if err != nil {
		return nil, err
	}
	dict, ok := root.(*pickleDict)
	if !ok {
		return nil, errors.New("want a dictionary, as SGLang's expert distribution recorder writes")
	}
	f.root = dict
	return f, nil
}

// read takes a member whole, within the budget.
func (u *unpacker) read(m *zip.File) (b []byte, err error) {
	r, err := m.Open()
	if err != nil {
		return nil, fmt.Errorf("member %s: %w", m.Name, err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	b, err = io.ReadAll(io.LimitReader(r, u.budget+1))
	if err != nil {
		return nil, fmt.Errorf("member %s: %w", m.Name, err)
	}
	if u.budget -= int64(len(b)); u.budget < 0 {
		return nil, fmt.Errorf("member %s: want at most %d bytes unpacked, have more", m.Name, maxUnpacked)
	}
	return b, nil
}

// storage reads the bytes of a storage, once.
func (f *torchFile) storage(key string) ([]byte, error) {
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

// array reads the tensor under a key of a dictionary of the file.
func (f *torchFile) array(d *pickleDict, key string) (array, error) {
	t, ok := d.entries[key].(*pickleTensor)
	if !ok {
		return array{}, fmt.Errorf("want a tensor under %q", key)
	}
	dtype := storageTypes[t.storage.dtype]
	if dtype == "" {
		return array{}, fmt.Errorf("%s: want a tensor of integers, have a %s", key, t.storage.dtype)
	}
	raw, err := f.storage(t.storage.key)
	if err != nil {
		return array{}, fmt.Errorf("%s: %w", key, err)
	}
	a, err := strided(raw, dtype, t.offset, t.shape, t.stride)
	if err != nil {
		return array{}, fmt.Errorf("%s: %w", key, err)
	}
	return a, nil
}

// matrix reads a tensor of [layers, copies].
func (f *torchFile) matrix(d *pickleDict, key string) (array, error) {
	a, err := f.array(d, key)
	if err == nil && (len(a.shape) != 2 || a.shape[0] < 1 || a.shape[0] > maxLayers || a.shape[1] > maxExperts) {
		err = fmt.Errorf("%s: want [layers, copies], have %v", key, a.shape)
	}
	return a, err
}
