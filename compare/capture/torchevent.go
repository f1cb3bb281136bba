package capture

import (
	"math"
	"strconv"
)

const (
	noExternal = math.MinInt64 // the external id of an event that has none
	noTime     = math.MinInt64 // a time that is missing or none
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
	node            int64
	external        int64 // of an operator and the kernels it launched
}

// readEvent reads one event.
func (t *torchReader) readEvent() {
	e := &t.event
	*e = torchEvent{name: e.name[:0], pid: e.pid[:0], tid: e.tid[:0], start: noTime, duration: noTime,
		correlation: noCorrelation, device: -1, external: noExternal}
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

// nanoseconds reads microseconds: "1500.2509" → 1500250. Digits beyond a nanosecond are cut. Decimals, as Kineto
// writes them, are read exactly: a float64 would lose nanoseconds of the epoch.
func nanoseconds(text []byte) (ns int64) {
	decimals, decimal := 0, len(text) > 0
	point := false
	for _, c := range text {
		switch {
		case c == '.' && !point:
			point = true
		case c-'0' > 9, ns >= 1<<62/10 && decimals < 3:
			decimal = false
		case !point:
			ns = 10*ns + int64(c-'0')
		case decimals < 3:
			ns, decimals = 10*ns+int64(c-'0'), decimals+1
		}
	}
	if by := [...]int64{1000, 100, 10, 1}[decimals]; decimal && ns < 1<<62/by {
		return ns * by
	}
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil || !(math.Abs(v) < 1<<62/1000) {
		return noTime
	}
	return int64(v * 1000)
}
