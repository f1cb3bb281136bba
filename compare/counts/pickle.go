package counts

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// unpickle reads the part of Python's pickle format in which torch.save writes
// containers, numbers, strings and tensors (protocols 2 to 5). Unlike Python's
// own reader it can run nothing: a global is only a name, and calling one means
// building a tensor or an ordered dictionary; every other name is refused.
//
// Values come back as nil, bool, int64, float64, string, []any (tuples too),
// *pickleDict, *pickleTensor.
func unpickle(b []byte) (any, error) {
	p := &pickleReader{rest: b, memo: map[int]any{}}
	for range len(b) + 1 {
		done, err := p.step()
		if err != nil {
			return nil, fmt.Errorf("pickle: byte %d: %w", len(b)-len(p.rest), err)
		}
		if done {
			return p.pop()
		}
	}
	return nil, errPickleEnd
}

var errPickleEnd = errors.New("pickle ends too early")

// pickleDict is a dictionary with string keys; entries under other keys are
// dropped, as nothing that is read here has any.
type pickleDict struct{ entries map[string]any }

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

type pickleReader struct {
	rest  []byte
	stack []any
	memo  map[int]any
}

func (p *pickleReader) take(n int) ([]byte, error) {
	if n < 0 || n > len(p.rest) {
		return nil, errPickleEnd
	}
	b := p.rest[:n]
	p.rest = p.rest[n:]
	return b, nil
}

// length reads an unsigned integer of n bytes.
func (p *pickleReader) length(n int) (int, error) {
	b, err := p.take(n)
	if err != nil {
		return 0, err
	}
	var wide [8]byte
	copy(wide[:], b)
	v := binary.LittleEndian.Uint64(wide[:])
	if v > math.MaxInt32 {
		return 0, fmt.Errorf("length %d is too large", v)
	}
	return int(v), nil
}

func (p *pickleReader) push(v any) error {
	p.stack = append(p.stack, v)
	return nil
}

func (p *pickleReader) pop() (any, error) {
	if len(p.stack) == 0 {
		return nil, fmt.Errorf("the stack is empty")
	}
	v := p.stack[len(p.stack)-1]
	p.stack = p.stack[:len(p.stack)-1]
	return v, nil
}

// popMark pops everything above the last mark, and the mark.
func (p *pickleReader) popMark() ([]any, error) {
	for i := len(p.stack) - 1; i >= 0; i-- {
		if _, ok := p.stack[i].(pickleMark); ok {
			items := append([]any(nil), p.stack[i+1:]...)
			p.stack = p.stack[:i]
			return items, nil
		}
	}
	return nil, fmt.Errorf("no mark on the stack")
}

// tuple pops n values as one.
func (p *pickleReader) tuple(n int) error {
	if len(p.stack) < n {
		return fmt.Errorf("the stack is empty")
	}
	items := append([]any{}, p.stack[len(p.stack)-n:]...)
	p.stack = p.stack[:len(p.stack)-n]
	return p.push(items)
}

// step runs one opcode; done means STOP.
func (p *pickleReader) step() (done bool, err error) {
	op, err := p.take(1)
	if err != nil {
		return false, err
	}
	switch op[0] {
	case 0x80: // PROTO
		_, err = p.take(1)
	case 0x95: // FRAME
		_, err = p.take(8)
	case '.':
		return true, nil
	case '(':
		err = p.push(pickleMark{})
	case 'N':
		err = p.push(nil)
	case 0x88, 0x89: // NEWTRUE, NEWFALSE
		err = p.push(op[0] == 0x88)
	case '}':
		err = p.push(&pickleDict{map[string]any{}})
	case ']':
		err = p.push(&[]any{})
	case ')':
		err = p.push([]any{})
	case 't':
		var items []any
		if items, err = p.popMark(); err == nil {
			err = p.push(items)
		}
	case 0x85, 0x86, 0x87: // TUPLE1 to TUPLE3
		err = p.tuple(int(op[0]) - 0x84)
	case 'K', 'M', 'J', 0x8a, 'G', 'X', 0x8c, 'U': // numbers and strings
		err = p.scalar(op[0])
	case 'q', 'r', 0x94, 'h', 'j': // the memo
		err = p.remember(op[0])
	case 'c', 0x93, 'Q', 'R', 'b': // globals, persistent ids, calls, state
		err = p.object(op[0])
	case 'a', 'e', 's', 'u': // items of lists and dictionaries
		err = p.fill(op[0])
	default:
		err = fmt.Errorf("operation 0x%02x is not allowed", op[0])
	}
	return false, err
}

func (p *pickleReader) scalar(op byte) error {
	width := map[byte]int{'K': 1, 'M': 2, 'J': 4, 'G': 8, 0x8a: 1, 'X': 4, 0x8c: 1, 'U': 1}[op]
	switch op {
	case 'G':
		b, err := p.take(width)
		if err != nil {
			return err
		}
		return p.push(math.Float64frombits(binary.BigEndian.Uint64(b)))
	case 'J':
		b, err := p.take(width)
		if err != nil {
			return err
		}
		return p.push(int64(int32(binary.LittleEndian.Uint32(b))))
	}
	n, err := p.length(width)
	if err != nil {
		return err
	}
	if op == 'K' || op == 'M' {
		return p.push(int64(n))
	}
	b, err := p.take(n)
	if err != nil {
		return err
	}
	if op != 0x8a { // a string
		return p.push(string(b))
	}
	if n > 8 { // LONG1, two's complement
		return fmt.Errorf("an integer of %d bytes", n)
	}
	var v int64
	for i := n - 1; i >= 0; i-- {
		v = v<<8 | int64(b[i])
	}
	if shift := 64 - 8*n; n > 0 && shift > 0 {
		v = v << shift >> shift
	}
	return p.push(v)
}

func (p *pickleReader) remember(op byte) error {
	key, err := len(p.memo), error(nil)
	switch op {
	case 'q', 'h':
		key, err = p.length(1)
	case 'r', 'j':
		key, err = p.length(4)
	}
	if err != nil {
		return err
	}
	if op == 'h' || op == 'j' {
		v, ok := p.memo[key]
		if !ok {
			return fmt.Errorf("nothing was remembered as %d", key)
		}
		return p.push(v)
	}
	if len(p.stack) == 0 {
		return fmt.Errorf("the stack is empty")
	}
	p.memo[key] = p.stack[len(p.stack)-1]
	return nil
}

// fill adds items to the list or dictionary below them.
func (p *pickleReader) fill(op byte) error {
	var items []any
	var err error
	switch op {
	case 'e', 'u':
		items, err = p.popMark()
	case 'a', 's':
		n := 1
		if op == 's' {
			n = 2
		}
		if err = p.tuple(n); err == nil {
			var v any
			v, err = p.pop()
			items, _ = v.([]any)
		}
	}
	if err != nil {
		return err
	}
	if len(p.stack) == 0 {
		return fmt.Errorf("the stack is empty")
	}
	switch into := p.stack[len(p.stack)-1].(type) {
	case *[]any:
		*into = append(*into, items...)
	case *pickleDict:
		if len(items)%2 != 0 {
			return fmt.Errorf("a key without a value")
		}
		for i := 0; i < len(items); i += 2 {
			if key, ok := items[i].(string); ok {
				into.entries[key] = items[i+1]
			}
		}
	default:
		return fmt.Errorf("items for what is neither a list nor a dictionary")
	}
	return nil
}
