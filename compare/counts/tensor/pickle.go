package tensor

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"
)

// unpickle reads the part of Python's pickle format (protocol 2) in which torch.save writes
// containers, numbers, strings and tensors. Unlike Python's own reader it can run nothing: a
// global is only a name, and calling one means building a tensor or an ordered dictionary; every
// other name is refused.
func unpickle(b []byte, file *torch) (v any) {
	p := &pickleReader{rest: b, file: file}
	if err := Attempt(func() { v = p.run() }); err != nil {
		Fail("pickle: byte %d: %w", len(b)-len(p.rest), err)
	}
	return v
}

// run runs the operations up to the last, and returns what they built.
func (p *pickleReader) run() any {
	for range maxOperations {
		op := p.take(1)[0]
		if op == '.' {
			return p.pop(1)[0]
		}
		if operations[op] == nil {
			Fail("operation 0x%02x is not allowed", op)
		}
		operations[op](p)
	}
	Fail("want at most %d operations: a dump of so many passes cannot be read; record fewer", maxOperations)
	return nil
}

// maxOperations bounds what a pickle builds, which takes a hundred times its bytes of memory: a pass of
// SGLang takes about 150 operations, and a list grows by 1,000 items at a time.
const maxOperations = 1 << 23

type pickleGlobal string // a name
type pickleMark struct{}

// pickleReader is a stack machine.
type pickleReader struct {
	rest  []byte
	file  *torch
	stack []any
	memo  []any
}

func (p *pickleReader) take(n int) []byte {
	if n > len(p.rest) {
		Fail("pickle ends too early")
	}
	b := p.rest[:n]
	p.rest = p.rest[n:]
	return b
}

// number reads a little-endian integer of up to 8 bytes, without a sign.
func (p *pickleReader) number(bytes int) int64 {
	var wide [8]byte
	if bytes > len(wide) {
		Fail("an integer of %d bytes", bytes)
	}
	copy(wide[:], p.take(bytes))
	return int64(binary.LittleEndian.Uint64(wide[:]))
}

// signed reads an integer in two's complement: ff → −1; 0 of no bytes.
func (p *pickleReader) signed(bytes int) int64 {
	unused := 64 - 8*min(8, bytes)
	return p.number(bytes) << unused >> unused
}

// line reads up to the end of a line.
func (p *pickleReader) line() string {
	line, _, _ := bytes.Cut(p.rest, []byte("\n"))
	p.take(len(line) + 1) // which fails where the line does not end
	return string(line)
}

func (p *pickleReader) push(v any) { p.stack = append(p.stack, v) }

// pop takes n values from the stack, in the order in which they were pushed.
func (p *pickleReader) pop(n int) []any {
	if n > len(p.stack) {
		Fail("the stack is empty")
	}
	items := slices.Clone(p.stack[len(p.stack)-n:])
	p.stack = p.stack[:len(p.stack)-n]
	return items
}

// popMark takes everything above the last mark, and the mark.
func (p *pickleReader) popMark() []any {
	for i, v := range slices.Backward(p.stack) {
		if v == (pickleMark{}) {
			return p.pop(len(p.stack) - i)[1:]
		}
	}
	Fail("no mark on the stack")
	return nil
}

// top is the last value, which stays.
func (p *pickleReader) top() any {
	v := p.pop(1)[0]
	p.push(v)
	return v
}

// operations are the opcodes that are allowed, other than STOP.
var operations = [256]func(*pickleReader){
	0x80: func(p *pickleReader) { p.take(1) }, // PROTO

	'(':  func(p *pickleReader) { p.push(pickleMark{}) },
	'N':  func(p *pickleReader) { p.push(nil) },
	0x88: func(p *pickleReader) { p.push(true) },
	0x89: func(p *pickleReader) { p.push(false) },
	'K':  func(p *pickleReader) { p.push(p.number(1)) },
	'M':  func(p *pickleReader) { p.push(p.number(2)) },
	'J':  func(p *pickleReader) { p.push(p.signed(4)) },
	0x8a: func(p *pickleReader) { p.push(p.signed(int(p.number(1)))) }, // LONG1
	'G':  func(p *pickleReader) { p.push(math.Float64frombits(binary.BigEndian.Uint64(p.take(8)))) },
	'X':  func(p *pickleReader) { p.push(string(p.take(int(p.number(4))))) },

	'}':  func(p *pickleReader) { p.push(map[string]any{}) },
	']':  func(p *pickleReader) { p.push(&[]any{}) },
	')':  func(p *pickleReader) { p.push([]any{}) },
	't':  func(p *pickleReader) { p.push(p.popMark()) },
	0x85: func(p *pickleReader) { p.push(p.pop(1)) }, // TUPLE1
	0x86: func(p *pickleReader) { p.push(p.pop(2)) },
	0x87: func(p *pickleReader) { p.push(p.pop(3)) },
	'a':  func(p *pickleReader) { p.fill(p.pop(1)) },
	's':  func(p *pickleReader) { p.fill(p.pop(2)) },
	'e':  func(p *pickleReader) { p.fill(p.popMark()) },
	'u':  func(p *pickleReader) { p.fill(p.popMark()) },
	'b':  func(p *pickleReader) { p.pop(1) }, // the state of a container adds nothing to its items

	'q': func(p *pickleReader) { p.remember(int(p.number(1))) },
	'r': func(p *pickleReader) { p.remember(int(p.number(4))) },
	'h': func(p *pickleReader) { p.recall(int(p.number(1))) },
	'j': func(p *pickleReader) { p.recall(int(p.number(4))) },

	'c': func(p *pickleReader) { p.global(p.line() + "." + p.line()) },
	'Q': func(*pickleReader) {}, // what names a storage is taken for it
	'R': func(p *pickleReader) { call := p.pop(2); p.call(call[0], call[1]) },
}

// remember keeps the last value; Python numbers what it remembers from 0 on.
func (p *pickleReader) remember(key int) {
	if key != len(p.memo) {
		Fail("want the next memory to be %d, have %d", len(p.memo), key)
	}
	p.memo = append(p.memo, p.top())
}

func (p *pickleReader) recall(key int) {
	if key >= len(p.memo) {
		Fail("nothing was remembered as %d", key)
	}
	p.push(p.memo[key])
}

// fill adds items to the list or, each behind its key, to the dictionary below them. Entries of a dictionary under a
// key that is no text are dropped.
func (p *pickleReader) fill(items []any) {
	switch into := p.top().(type) {
	case *[]any:
		*into = append(*into, items...)
	case map[string]any:
		for pair := range slices.Chunk(items, 2) {
			if key, isText := pair[0].(string); isText {
				into[key] = pair[len(pair)-1]
			}
		}
	default:
		Fail("want items of a list or a dictionary")
	}
}

// The only globals that are understood beside torch's storages.
const (
	globalTensor      = "torch._utils._rebuild_tensor_v2"
	globalOrderedDict = "collections.OrderedDict"
)

func (p *pickleReader) global(name string) {
	isStorage := strings.HasPrefix(name, "torch.") && strings.HasSuffix(name, "Storage") // which is only named
	if name != globalTensor && name != globalOrderedDict && !isStorage {
		Fail("the global %q is not allowed: only tensors of integers, lists and dictionaries are read", name)
	}
	p.push(pickleGlobal(name))
}

func (p *pickleReader) call(callee, argument any) {
	switch arguments, _ := argument.([]any); callee {
	case pickleGlobal(globalOrderedDict):
		p.push(map[string]any{})
	case pickleGlobal(globalTensor):
		p.push(Stored(func() Array { return p.file.array(arguments) }))
	default:
		Fail("calling %v is not allowed", callee)
	}
}
