package tensor

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
)

// unpickle reads the part of Python's pickle format in which torch.save writes
// containers, numbers, strings and tensors (protocols 2 to 5). Unlike Python's
// own reader it can run nothing: a global is only a name, and calling one means
// building a tensor or an ordered dictionary; every other name is refused.
//
// Values come back as nil, bool, int64, float64, string, []any (tuples), *[]any (lists), Dict, and for
// Torch.Array pickleTensor.
func unpickle(b []byte) (any, error) {
	p := &pickleReader{rest: b}
	for operations := 0; p.err == nil; operations++ {
		if operations == maxOperations {
			p.fail("want at most %d operations: a dump of so many passes cannot be read; record fewer", maxOperations)
			break
		}
		op := p.take(1)[0]
		if op == '.' {
			v := p.popN(1)[0]
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
// nothing that is read here has any.
type Dict map[string]any

type (
	pickleGlobal  string // a name
	pickleStorage []any  // what names a member of the zip: "storage", type, key, location, size
	pickleTensor  []any  // a view of a storage: the storage, offset, shape, stride, …
	pickleMark    struct{}
)

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

// signed reads a little-endian integer of up to 8 bytes in two's complement, 0 of none.
func (p *pickleReader) signed(bytes int) int64 {
	var wide [8]byte
	if bytes > len(wide) {
		p.fail("an integer of %d bytes", bytes)
		return 0
	}
	copy(wide[8-bytes:], p.take(bytes))
	return int64(binary.LittleEndian.Uint64(wide[:])) >> (64 - 8*max(1, bytes))
}

// length reads a little-endian integer of up to 4 bytes.
func (p *pickleReader) length(bytes int) int {
	v := uint32(p.signed(bytes)) << (32 - 8*bytes) >> (32 - 8*bytes)
	if v > math.MaxInt32 {
		p.fail("length %d is too large", v)
		return 0
	}
	return int(v)
}

// text reads a string after its length.
func (p *pickleReader) text(bytes int) { p.push(string(p.take(p.length(bytes)))) }

// line reads up to the end of a line.
func (p *pickleReader) line() string {
	line, _, found := bytes.Cut(p.rest, []byte("\n"))
	p.take(len(line) + 1) // which fails where the line does not end
	if !found {
		return ""
	}
	return string(line)
}

func (p *pickleReader) push(v any) {
	if len(p.stack) == maxStack {
		p.fail("want at most %d values on the stack", maxStack)
		return
	}
	p.stack = append(p.stack, v)
}

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
			p.popN(1)
			return items
		}
	}
	p.fail("no mark on the stack")
	return nil
}

// top is the last value, which stays.
func (p *pickleReader) top() any {
	v := p.popN(1)[0]
	p.stack = append(p.stack, v)
	return v
}

// operations are the opcodes that are allowed, other than STOP.
var operations = [256]func(*pickleReader){
	0x80: func(p *pickleReader) { p.take(1) }, // PROTO
	0x95: func(p *pickleReader) { p.take(8) }, // FRAME

	'(':  func(p *pickleReader) { p.push(pickleMark{}) },
	'N':  func(p *pickleReader) { p.push(nil) },
	0x88: func(p *pickleReader) { p.push(true) },
	0x89: func(p *pickleReader) { p.push(false) },
	'K':  func(p *pickleReader) { p.push(int64(p.length(1))) },
	'M':  func(p *pickleReader) { p.push(int64(p.length(2))) },
	'J':  func(p *pickleReader) { p.push(p.signed(4)) },
	0x8a: func(p *pickleReader) { p.push(p.signed(p.length(1))) }, // LONG1
	'G':  func(p *pickleReader) { p.push(math.Float64frombits(binary.BigEndian.Uint64(p.take(8)))) },
	'X':  func(p *pickleReader) { p.text(4) },
	'U':  func(p *pickleReader) { p.text(1) }, // SHORT_BINSTRING
	0x8c: func(p *pickleReader) { p.text(1) }, // SHORT_BINUNICODE

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
	'b':  func(p *pickleReader) { p.popN(1) }, // the state of a container adds nothing to its items

	'q':  func(p *pickleReader) { p.remember(p.length(1)) },
	'r':  func(p *pickleReader) { p.remember(p.length(4)) },
	0x94: func(p *pickleReader) { p.remember(len(p.memo)) }, // MEMOIZE
	'h':  func(p *pickleReader) { p.recall(p.length(1)) },
	'j':  func(p *pickleReader) { p.recall(p.length(4)) },

	'c':  func(p *pickleReader) { p.global(p.line() + "." + p.line()) },
	0x93: func(p *pickleReader) { name := p.popN(2); p.global(fmt.Sprint(name[0]) + "." + fmt.Sprint(name[1])) },
	'Q': func(p *pickleReader) {
		id, _ := p.popN(1)[0].([]any)
		p.push(pickleStorage(id))
	},
	'R': func(p *pickleReader) { call := p.popN(2); p.call(call[0], call[1]) },
}

func (p *pickleReader) run(op byte) {
	if operations[op] == nil {
		p.fail("operation 0x%02x is not allowed", op)
		return
	}
	operations[op](p)
}

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

// The only globals that are understood; storages are of module torch.
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

func (p *pickleReader) call(callee, argument any) {
	switch arguments, _ := argument.([]any); callee {
	case pickleGlobal(globalOrderedDict):
		p.push(Dict{})
	case pickleGlobal(globalTensor):
		p.push(pickleTensor(arguments))
	default:
		p.fail("calling %v is not allowed", callee)
	}
}
