package capture

import (
	"bytes"
	"math"
	"strconv"
)

const (
	noExternal = math.MinInt64 // the external id of an event that has none
	noTime     = math.MinInt64 // a time that is missing or none
	limit      = 1 << 62       // of a time that is one: sums of two fit 64 bits
)

// torchEvent is one event as far as it is used.
type torchEvent struct {
	kind            torchKind
	complete        bool
	name            []byte
	pid, tid        []byte
	start, duration int64
	correlation     uint32
	device          int64
	node, stream    int64
	external        int64 // of an operator and the kernels it launched
}

// readEvent reads one event.
func (t *torchReader) readEvent() {
	e := &t.event
	*e = torchEvent{name: e.name[:0], pid: e.pid[:0], tid: e.tid[:0], start: noTime, duration: noTime, device: -1,
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
			e.start = nanoseconds(t.in.value())
		case "dur":
			e.duration = nanoseconds(t.in.value())
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
			id := int64(noCorrelation)
			t.number(&id)
			e.correlation = correlationOf(id)
		case "device":
			t.number(&e.device)
		case "External id", "external id":
			t.number(&e.external)
		case "graph node id":
			t.number(&e.node)
		case "stream":
			t.number(&e.stream)
		default:
			t.in.skip()
		}
	}
}

// nanoseconds reads microseconds: "1500.2509" → 1500250. Digits beyond a nanosecond are cut. Decimals, as Kineto
// writes them, are read exactly: a float64 would lose nanoseconds of the epoch.
func nanoseconds(text []byte) int64 {
	us, decimals, _ := bytes.Cut(text, []byte{'.'})
	if n := len(decimals); len(bytes.TrimLeft(decimals, "0123456789")) == 0 {
		exact := append(append(append(make([]byte, 0, 32), us...), decimals[:min(n, 3)]...), "000"[min(n, 3):]...)
		if ns, err := strconv.ParseInt(string(exact), 10, 64); err == nil && -limit < ns && ns < limit {
			return ns
		}
	}
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil || !(math.Abs(v) < limit/1000) {
		return noTime
	}
	return int64(v * 1000)
}
