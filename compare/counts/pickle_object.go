package counts

import (
	"bytes"
	"fmt"
	"strings"
)

// object runs the operations about globals: naming one, calling one, looking up
// a persistent id, setting a state.
func (p *pickleReader) object(op byte) error {
	switch op {
	case 'c':
		module, err := p.line()
		if err != nil {
			return err
		}
		name, err := p.line()
		if err != nil {
			return err
		}
		return p.global(module, name)
	case 0x93: // STACK_GLOBAL
		name, err := p.pop()
		if err != nil {
			return err
		}
		module, err := p.pop()
		if err != nil {
			return err
		}
		return p.global(fmt.Sprint(module), fmt.Sprint(name))
	case 'Q':
		id, err := p.pop()
		if err != nil {
			return err
		}
		return p.storage(id)
	}
	argument, err := p.pop()
	if err != nil {
		return err
	}
	if op == 'b' { // the state of a container adds nothing to its items
		return nil
	}
	callee, err := p.pop()
	if err != nil {
		return err
	}
	arguments, ok := argument.([]any)
	if !ok {
		return fmt.Errorf("a call without a tuple of arguments")
	}
	return p.call(callee, arguments)
}

// line reads up to the end of a line.
func (p *pickleReader) line() (string, error) {
	i := bytes.IndexByte(p.rest, '\n')
	if i < 0 {
		return "", errPickleEnd
	}
	b, err := p.take(i + 1)
	return strings.TrimSuffix(string(b), "\n"), err
}

// The only globals that are understood; storages are those of module torch.
const (
	globalTensor      = "torch._utils._rebuild_tensor_v2"
	globalOrderedDict = "collections.OrderedDict"
)

func (p *pickleReader) global(module, name string) error {
	full := module + "." + name
	if full == globalTensor || full == globalOrderedDict || module == "torch" && storageSize[name] > 0 {
		return p.push(pickleGlobal(full))
	}
	return fmt.Errorf("the global %q is not allowed: only tensors of integers, lists and dictionaries are read", full)
}

// storageSize is the element size of the integer storages.
var storageSize = map[string]int{
	"ByteStorage": 1, "CharStorage": 1, "ShortStorage": 2, "IntStorage": 4, "LongStorage": 8,
	// Floats occur beside the counts; they are named but never read.
	"HalfStorage": 2, "BFloat16Storage": 2, "FloatStorage": 4, "DoubleStorage": 8, "BoolStorage": 1,
}

// storage turns ("storage", type, key, location, size) into a pickleStorage.
func (p *pickleReader) storage(id any) error {
	parts, _ := id.([]any)
	if len(parts) < 3 || parts[0] != "storage" {
		return fmt.Errorf("a persistent id that is no storage")
	}
	kind, ok := parts[1].(pickleGlobal)
	key, isText := parts[2].(string)
	dtype := strings.TrimPrefix(string(kind), "torch.")
	if !ok || !isText || storageSize[dtype] == 0 {
		return fmt.Errorf("a storage without type and key")
	}
	return p.push(pickleStorage{dtype: dtype, key: key})
}

func (p *pickleReader) call(callee any, arguments []any) error {
	switch callee {
	case pickleGlobal(globalOrderedDict):
		return p.push(&pickleDict{map[string]any{}})
	case pickleGlobal(globalTensor):
	default:
		return fmt.Errorf("calling %v is not allowed", callee)
	}
	if len(arguments) < 4 {
		return fmt.Errorf("a tensor of %d arguments, want at least 4", len(arguments))
	}
	storage, isStorage := arguments[0].(pickleStorage)
	offset, isOffset := arguments[1].(int64)
	shape, isShape := integers(arguments[2])
	stride, isStride := integers(arguments[3])
	if !isStorage || !isOffset || !isShape || !isStride || len(shape) != len(stride) {
		return fmt.Errorf("a tensor of other than storage, offset, shape and stride")
	}
	return p.push(&pickleTensor{storage: storage, offset: offset, shape: shape, stride: stride})
}

// integers reads a tuple of integers.
func integers(v any) ([]int64, bool) {
	items, ok := v.([]any)
	out := make([]int64, len(items))
	for i, item := range items {
		n, isInt := item.(int64)
		if !isInt {
			return nil, false
		}
		out[i] = n
	}
	return out, ok
}
