package capture

import (
	"math"
	"strconv"
	"strings"
)

// torchEvent is one event as far as it is used.
type torchEvent struct {
	kind        torchKind
	complete    bool
	name        []byte
	pid, tid    int32 // numbers of their texts
	start       int64
	duration    int64
	timed       bool
	lasting     bool // has a duration
	correlation int64
	device      int64 // −1 where not recorded
	node        int64
	external    int64 // of an operator and the kernels it launched
}

// readEvent reads one event and keeps it if it counts.
func (t *torchReader) readEvent() error {
	if t.in.PeekKind() != '{' {
		return t.in.SkipValue()
	}
	e := &t.event
	*e = torchEvent{name: e.name[:0], correlation: noCorrelation, device: -1, pid: -1, tid: -1, external: noCorrelation}
	if err := t.object(t.readField); err != nil {
		return err
	}
	if e.complete && e.timed {
		t.keep(e)
	}
	return nil
}

func (t *torchReader) readField(key []byte) error {
	e := &t.event
	switch string(key) {
	case "args":
		return t.object(t.readArgument)
	case "ts":
		return t.time(&e.start, &e.timed)
	case "dur":
		return t.time(&e.duration, &e.lasting)
	case "ph", "cat", "name", "pid", "tid":
		field := key[0]
		if string(key) == "pid" {
			field = 'P'
		}
		return t.readText(field)
	}
	return t.in.SkipValue()
}

// readText reads the fields whose values are names, by a letter for each.
func (t *torchReader) readText(field byte) error {
	text, err := t.scalar()
	if err != nil {
		return err
	}
	switch e := &t.event; field {
	case 'p':
		e.complete = string(text) == "X"
	case 'c':
		e.kind = torchKinds[string(text)]
	case 'n':
		e.name = append(e.name[:0], text...)
	case 'P':
		e.pid = t.ids.of(text)
	case 't':
		e.tid = t.ids.of(text)
	}
	return nil
}

func (t *torchReader) readArgument(key []byte) error {
	switch e := &t.event; string(key) {
	case "correlation":
		return t.number(&e.correlation)
	case "device":
		return t.number(&e.device)
	case "External id", "external id":
		return t.number(&e.external)
	case "graph node id":
		return t.number(&e.node)
	}
	return t.in.SkipValue()
}

// time reads microseconds as whole nanoseconds, exactly where they are written
// with up to three decimals, as Kineto does: a float64 would lose nanoseconds of
// the epoch.
func (t *torchReader) time(to *int64, known *bool) error {
	text, err := t.scalar()
	if err != nil || len(text) == 0 {
		return err
	}
	ns, ok := nanoseconds(string(text))
	if !ok {
		t.work.issues.OutOfRange++
		return nil
	}
	*to, *known = ns, true
	return nil
}

// nanoseconds reads decimal microseconds; digits beyond a nanosecond are cut.
func nanoseconds(text string) (int64, bool) {
	whole, fraction, _ := strings.Cut(text, ".")
	if strings.ContainsAny(text, "eE") {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || !(math.Abs(v) < math.MaxInt64/1e3) {
			return 0, false
		}
		return int64(v * 1e3), true
	}
	ns, err := strconv.ParseInt(whole+(fraction + "000")[:3], 10, 64)
	return ns, err == nil
}
