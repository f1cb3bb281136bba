package counts

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

// torchFile is a file of torch.save: a zip of a pickle and raw storages.
type torchFile struct {
	root     any
	prefix   string
	members  map[string]*zip.File
	storages map[string][]byte // by member: several tensors may view one storage
	unpacker
}

// unpacker reads members of a zip, up to a total size.
type unpacker struct{ budget int64 } // bytes that may still be read

func openTorch(z *zip.Reader) (*torchFile, error) {
	f := &torchFile{members: map[string]*zip.File{}, storages: map[string][]byte{}, unpacker: unpacker{maxUnpacked}}
	found := false
	for _, m := range z.File {
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
	f.root, err = unpickle(b)
	return f, err
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

// array is a row-major tensor of integers.
type array struct {
	shape  []int64
	values []int64
}

// row is the i-th part along the first dimension.
func (a array) row(i int) array {
	size := len(a.values) / int(a.shape[0])
	return array{shape: a.shape[1:], values: a.values[i*size : (i+1)*size : (i+1)*size]}
}

// elements is the product of the dimensions; an error when it is negative or
// more than a file can hold.
func elements(shape []int64) (int, error) {
	n := int64(1)
	for _, d := range shape {
		if d < 0 || d > 0 && n > maxFile/d {
			return 0, fmt.Errorf("impossible shape %v", shape)
		}
		n *= d
	}
	return int(n), nil
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
	size := storageSize[t.storage.dtype]
	raw, err := f.storage(t.storage.key)
	if err != nil {
		return array{}, fmt.Errorf("%s: %w", key, err)
	}
	n, err := elements(t.shape)
	if err != nil {
		return array{}, fmt.Errorf("%s: %w", key, err)
	}
	if n > len(raw)/size {
		return array{}, fmt.Errorf("%s: shape %v of a storage of %d elements", key, t.shape, len(raw)/size)
	}
	out := array{shape: t.shape, values: make([]int64, n)}
	index := make([]int64, len(t.shape))
	for i := range out.values {
		at := t.offset
		for d, x := range index {
			at += x * t.stride[d] // bounded by the check below on every element
		}
		if at < 0 || at >= int64(len(raw)/size) {
			return array{}, fmt.Errorf("%s: element %d lies outside its storage of %d elements", key, i, len(raw)/size)
		}
		if out.values[i], err = integer(t.storage.dtype, raw[at*int64(size):]); err != nil {
			return array{}, fmt.Errorf("%s: %w", key, err)
		}
		for d := len(index) - 1; d >= 0; d-- {
			if index[d]++; index[d] < t.shape[d] {
				break
			}
			index[d] = 0
		}
	}
	return out, nil
}

func integer(dtype string, b []byte) (int64, error) {
	switch dtype {
	case "ByteStorage":
		return int64(b[0]), nil
	case "CharStorage":
		return int64(int8(b[0])), nil
	case "ShortStorage":
		return int64(int16(binary.LittleEndian.Uint16(b))), nil
	case "IntStorage":
		return int64(int32(binary.LittleEndian.Uint32(b))), nil
	case "LongStorage":
		return int64(binary.LittleEndian.Uint64(b)), nil
	}
	return 0, fmt.Errorf("want a tensor of integers, have a %s", dtype)
}

// readZip tells a torch file from a NumPy archive.
func readZip(path string, content []byte) (*Record, error) {
	z, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		return nil, err
	}
	for _, m := range z.File {
		switch {
		case strings.HasSuffix(m.Name, "/data.pkl"):
			f, err := openTorch(z)
			if err != nil {
				return nil, err
			}
			return readTorch(path, f)
		case strings.HasSuffix(m.Name, ".npy"):
			return readMcore(path, z)
		}
	}
	return nil, fmt.Errorf("a zip that is neither of torch.save (no data.pkl) nor of NumPy (no .npy)")
}
