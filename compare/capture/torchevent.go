package capture

import (
	"bytes"
	"math"
	"strconv"
	"strings"
)

// noExternal is the external id of an event that has none.
const noExternal = math.MinInt64

// torchEvent is one event as far as it is used.
type torchEvent struct {
	kind        torchKind
	complete    bool
	name        []byte
	pid, tid    []byte
	start       int64
	duration    int64
	timed       bool
	lasting     bool  // has a duration
	bad         int64 // times that are none
	correlation uint32
	device      int64 // −1 where not recorded
	node        int64
	external    int64 // of an operator and the kernels it launched
}

// readEvent reads one event.
func (t *torchReader) readEvent() {
	e := &t.event
	*e = torchEvent{name: e.name[:0], pid: e.pid[:0], tid: e.tid[:0], correlation: noCorrelation, device: -1,
		external: noExternal}
	for object := t.in.begin('{'); object && t.in.next('}'); {
		switch string(t.in.name()) {
		case "ph":
			if e.complete = string(t.in.value()) == "X"; !e.complete {
				for t.in.next('}') { // arrows from launches to kernels, mostly
					t.in.name()
					t.in.skip()
				}
				return
			}
		case "cat":
			e.kind = torchKinds[string(t.in.value())]
		case "name":
			e.name = append(e.name[:0], t.in.value()...)
		case "pid":
			e.pid = append(e.pid[:0], t.in.value()...)
		case "tid":
			e.tid = append(e.tid[:0], t.in.value()...)
		case "ts":
			e.time(t.in.value(), &e.start, &e.timed)
		case "dur":
			e.time(t.in.value(), &e.duration, &e.lasting)
		case "args":
			t.readArguments(e)
		default:
			t.in.skip()
		}
	}
}

func (t *torchReader) readArguments(e *torchEvent) {
	for object := t.in.begin('{'); object && t.in.next('}'); {
		switch string(t.in.name()) {
		case "correlation":
			id := int64(-1)
			t.number(&id)
			e.correlation = correlationOf(id, true)
		case "device":
			t.number(&e.device)
		case "External id", "external id":
			t.number(&e.external)
		case "graph node id":
			t.number(&e.node)
		default:
			t.in.skip()
		}
	}
}

// time reads microseconds as whole nanoseconds, exactly where they are written
// with up to three decimals, as Kineto does: a float64 would lose nanoseconds of
// the epoch.
func (e *torchEvent) time(text []byte, to *int64, known *bool) {
	if len(text) == 0 {
		return
	}
	if ns, ok := nanoseconds(text); ok {
		*to, *known = ns, true
	} else {
		e.bad++
	}
}

// nanoseconds reads decimal microseconds; digits beyond a nanosecond are cut.
func nanoseconds(text []byte) (int64, bool) {
	if point := len(text) - 4; 0 < point && point < 15 && text[point] == '.' && digits(text) == point &&
		digits(text[point+1:]) == 3 {
		ns := int64(0) // as Kineto writes them
		for _, c := range text {
			if c != '.' {
				ns = 10*ns + int64(c-'0')
			}
		}
		return ns, true
	}
	whole, fraction, _ := strings.Cut(string(text), ".")
	if bytes.ContainsAny(text, "eE") {
		v, err := strconv.ParseFloat(string(text), 64)
		if err != nil || !(math.Abs(v) < math.MaxInt64/1e3) {
			return 0, false
		}
		return int64(v * 1e3), true
	}
	ns, err := strconv.ParseInt(whole+(fraction + "000")[:3], 10, 64)
	return ns, err == nil
}
