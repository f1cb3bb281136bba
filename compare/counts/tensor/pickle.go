package tensor

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
)

// unpickle reads the part of Python's pickle format in which torch.save writes
// containers, numbers, strings and tensors (protocols 2 to 5). Unlike Python's
// own reader it can run nothing: a global is only a name, and calling one means
// building a tensor or an ordered dictionary; every other name is refused.
//
// Values come back as nil, bool, int64, float64, string, []any (tuples too),
// Dict, *pickleTensor.
func unpickle(b []byte) (any, error) {
	p := &pickleReader{rest: b}
	for operations := 0; p.err == nil; operations++ {
		if operations == maxOperations {
			p.fail("want at most %d operations: a dump of so many passes cannot be read; record fewer", maxOperations)
			break
		}
		op := p.take(1)[0]
		if op == '.' {
			v := p.pop()
			return v, p.err
		}
		p.run(op)
	}
	return nil, fmt.Errorf("pickle: byte %d: %w", len(b)-len(p.rest), p.err)
}

// Bounds on what a pickle builds, which takes a hundred times its bytes of memory: a pass of
// SGLang takes about 150 operations, and a list grows by 1,000 items at a time.
const (
	maxOperations = 1 << 23
	maxStack      = 1 << 16
)

// Dict is a dictionary with string keys; entries under other keys are dropped, as
// nothing that is read here has any. Its values are nil, bool, int64, float64,
// string, tuples, Dict, and what List and Torch.Array read.
type Dict map[string]any

// List is a list under a key; not ok for anything else.
func (d Dict) List(key string) (items []any, ok bool) {
	list, ok := d[key].(*[]any)
	if !ok {
		return nil, false
	}
	return *list, true
}

// pickleTensor is a view of a storage, which is a member of the zip.
type pickleTensor struct {
	storage       pickleStorage
	offset        int64 // elements
	shape, stride []int64
}

// pickleStorage names a storage and its element type: "IntStorage", ….
type pickleStorage struct{ dtype, key string }

type pickleGlobal string

type pickleMark struct{}

// pickleReader is a stack machine. After the first error, what it reads is zero.
type pickleReader struct {
	rest  []byte
	stack []any
	memo  []any // Python numbers what it remembers from 0 on
	err   error
}

func (p *pickleReader) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

func (p *pickleReader) take(n int) []byte {
	if n > len(p.rest) {
		p.fail("pickle ends too early")
		return make([]byte, min(n, 8)) // no operation looks at single bytes of more
	}
	b := p.rest[:n]
	p.rest = p.rest[n:]
	return b
}

// unsigned reads a little-endian integer of up to 4 bytes.
func (p *pickleReader) unsigned(bytes int) int {
	var wide [8]byte
	copy(wide[:], p.take(bytes))
	v := binary.LittleEndian.Uint64(wide[:])
	if v > math.MaxInt32 {
		p.fail("length %d is too large", v)
		return 0
	}
	return int(v)
}

// long reads LONG1: a length, and that many bytes in two's complement.
func (p *pickleReader) long() int64 {
	n := p.unsigned(1)
	if n > 8 {
		p.fail("an integer of %d bytes", n)
		return 0
	}
	var wide [8]byte
	copy(wide[8-n:], p.take(n))
	if n == 0 {
		return 0
	}
	return int64(binary.LittleEndian.Uint64(wide[:])) >> (64 - 8*n)
}

// line reads up to the end of a line.
func (p *pickleReader) line() string {
	i := bytes.IndexByte(p.rest, '\n')
	if i < 0 {
		i = len(p.rest) // take fails
	}
	return strings.TrimSuffix(string(p.take(i+1)), "\n")
}

func (p *pickleReader) push(v any) {
	if len(p.stack) == maxStack {
		p.fail("want at most %d values on the stack", maxStack)
		return
	}
	p.stack = append(p.stack, v)
}

func (p *pickleReader) pop() any { return p.popN(1)[0] }

// popN pops n values, in the order in which they were pushed.
func (p *pickleReader) popN(n int) []any {
	items := make([]any, n)
	if len(p.stack) < n {
		p.fail("the stack is empty")
		return items
	}
	rest := len(p.stack) - n
	copy(items, p.stack[rest:])
	p.stack = p.stack[:rest]
	return items
}

// popMark pops everything above the last mark, and the mark.
func (p *pickleReader) popMark() []any {
	for i := len(p.stack) - 1; i >= 0; i-- {
		if _, ok := p.stack[i].(pickleMark); ok {
			items := p.popN(len(p.stack) - 1 - i)
			p.pop()
			return items
		}
	}
	p.fail("no mark on the stack")
	return nil
}

// top is the last value, which stays.
func (p *pickleReader) top() any {
	if len(p.stack) == 0 {
		p.fail("the stack is empty")
		return nil
	}
	return p.stack[len(p.stack)-1]
}

// operations are the opcodes that are allowed, other than STOP.
var operations = [256]func(*pickleReader){
	0x80: func(p *pickleReader) { p.take(1) }, // PROTO
	0x95: func(p *pickleReader) { p.take(8) }, // FRAME

	'(':  func(p *pickleReader) { p.push(pickleMark{}) },
	'N':  func(p *pickleReader) { p.push(nil) },
	0x88: func(p *pickleReader) { p.push(true) },
	0x89: func(p *pickleReader) { p.push(false) },
	'K':  func(p *pickleReader) { p.push(int64(p.unsigned(1))) },
	'M':  func(p *pickleReader) { p.push(int64(p.unsigned(2))) },
	'J':  func(p *pickleReader) { p.push(int64(int32(binary.LittleEndian.Uint32(p.take(4))))) },
	0x8a: func(p *pickleReader) { p.push(p.long()) },
	'G':  func(p *pickleReader) { p.push(math.Float64frombits(binary.BigEndian.Uint64(p.take(8)))) },
	'X':  func(p *pickleReader) { p.push(string(p.take(p.unsigned(4)))) },
	'U':  (*pickleReader).shortText, // SHORT_BINSTRING
	0x8c: (*pickleReader).shortText, // SHORT_BINUNICODE

	'}':  func(p *pickleReader) { p.push(Dict{}) },
	']':  func(p *pickleReader) { p.push(&[]any{}) },
	')':  func(p *pickleReader) { p.push([]any{}) },
	't':  func(p *pickleReader) { p.push(p.popMark()) },
	0x85: func(p *pickleReader) { p.push(p.popN(1)) }, // TUPLE1
	0x86: func(p *pickleReader) { p.push(p.popN(2)) },
	0x87: func(p *pickleReader) { p.push(p.popN(3)) },
	'a':  func(p *pickleReader) { p.fill(p.popN(1)) },
	's':  func(p *pickleReader) { p.fill(p.popN(2)) },
	'e':  func(p *pickleReader) { p.fill(p.popMark()) },
	'u':  func(p *pickleReader) { p.fill(p.popMark()) },
	'b':  func(p *pickleReader) { p.pop() }, // the state of a container adds nothing to its items

	'q':  func(p *pickleReader) { p.remember(p.unsigned(1)) },
	'r':  func(p *pickleReader) { p.remember(p.unsigned(4)) },
	0x94: func(p *pickleReader) { p.remember(len(p.memo)) }, // MEMOIZE
	'h':  func(p *pickleReader) { p.recall(p.unsigned(1)) },
	'j':  func(p *pickleReader) { p.recall(p.unsigned(4)) },

	'c':  func(p *pickleReader) { p.global(p.line() + "." + p.line()) },
	0x93: func(p *pickleReader) { name := p.popN(2); p.global(fmt.Sprint(name[0]) + "." + fmt.Sprint(name[1])) },
	'Q':  func(p *pickleReader) { p.storage(p.pop()) },
	'R':  func(p *pickleReader) { call := p.popN(2); p.call(call[0], call[1]) },
}

func (p *pickleReader) run(op byte) {
	if operations[op] == nil {
		p.fail("operation 0x%02x is not allowed", op)
		return
	}
	operations[op](p)
}

func (p *pickleReader) shortText() { p.push(string(p.take(p.unsigned(1)))) }

func (p *pickleReader) remember(key int) {
	switch v := p.top(); {
	case key < len(p.memo):
		p.memo[key] = v
	case key == len(p.memo):
		p.memo = append(p.memo, v)
	default:
		p.fail("want the next memory to be %d, have %d", len(p.memo), key)
	}
}

func (p *pickleReader) recall(key int) {
	if key >= len(p.memo) {
		p.fail("nothing was remembered as %d", key)
		return
	}
	p.push(p.memo[key])
}

// fill adds items to the list or dictionary below them.
func (p *pickleReader) fill(items []any) {
	switch into := p.top().(type) {
	case *[]any:
		*into = append(*into, items...)
	case Dict:
		if len(items)%2 != 0 {
			p.fail("a key without a value")
			return
		}
		for i := 0; i < len(items); i += 2 {
			if key, ok := items[i].(string); ok {
				into[key] = items[i+1]
			}
		}
	default:
		p.fail("items for what is neither a list nor a dictionary")
	}
}

// The only globals that are understood; storages are those of module torch.
const (
	globalTensor      = "torch._utils._rebuild_tensor_v2"
	globalOrderedDict = "collections.OrderedDict"
)

func (p *pickleReader) global(name string) {
	storage, isTorch := strings.CutPrefix(name, "torch.")
	if _, known := storageTypes[storage]; name != globalTensor && name != globalOrderedDict && !(isTorch && known) {
		p.fail("the global %q is not allowed: only tensors of integers, lists and dictionaries are read", name)
	}
	p.push(pickleGlobal(name))
}

// storage turns ("storage", type, key, location, size) into a pickleStorage.
func (p *pickleReader) storage(id any) {
	parts, _ := id.([]any)
	if len(parts) < 3 || parts[0] != "storage" {
		p.fail("a persistent id that is no storage")
		return
	}
	kind, _ := parts[1].(pickleGlobal)
	dtype := strings.TrimPrefix(string(kind), "torch.")
	key, isText := parts[2].(string)
	if _, known := storageTypes[dtype]; !known || !isText {
		p.fail("a storage without type and key")
	}
	p.push(pickleStorage{dtype: dtype, key: key})
}

func (p *pickleReader) call(callee, argument any) {
	arguments, ok := argument.([]any)
	switch {
	case !ok:
		p.fail("a call without a tuple of arguments")
	case callee == pickleGlobal(globalOrderedDict):
		p.push(Dict{})
	case callee != pickleGlobal(globalTensor):
		p.fail("calling %v is not allowed", callee)
	case len(arguments) < 4:
		p.fail("a tensor of %d arguments, want at least 4", len(arguments))
	default:
		t, err := rebuild(arguments)
		if err != nil {
			p.fail("%w", err)
		}
		p.push(t)
	}
}

func rebuild(arguments []any) (*pickleTensor, error) {
	storage, isStorage := arguments[0].(pickleStorage)
	offset, isOffset := arguments[1].(int64)
	shape, isShape := integers(arguments[2])
	stride, isStride := integers(arguments[3])
	if !isStorage || !isOffset || !isShape || !isStride || len(shape) != len(stride) {
		return nil, errors.New("a tensor of other than storage, offset, shape and stride")
	}
	return &pickleTensor{storage: storage, offset: offset, shape: shape, stride: stride}, nil
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
