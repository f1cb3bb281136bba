package control

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moebalance/moebalance/testdata/require"
)

// engine is a server in this process whose ranks follow a folder, on a clock of its own.
type engine struct {
	t        *testing.T
	now      time.Time
	follower *Follower
	router   string
	steps    int64
	runs     []Run
	routers  []string                     // that routed at the end of each run
	before   func(e *engine, n int) error // what goes wrong in a run
}

func newEngine(t *testing.T, ranks int) (*engine, *Driver) {
	folder := Folder(t.TempDir())
	e := &engine{t: t, now: time.Unix(1000, 0), router: "off"}
	e.follower = &Follower{Side: folder, Ranks: ranks, Own: "off",
		Set: func(r string) error { e.router = r; return nil }}
	d := &Driver{Channel: folder, Now: func() time.Time { return e.now }, Block: func(int) {},
		Sleep: func(ctx context.Context, d time.Duration) error {
			if d == renewal { // nobody renews: a run that takes longer than the term expires
				<-ctx.Done()
				return ctx.Err()
			}
			e.now = e.now.Add(d)
			return ctx.Err()
		},
		Run: func(_ context.Context, r Run) error { return e.run(r) },
	}
	return e, d
}

// run is one client run of three steps and ten seconds.
func (e *engine) run(r Run) error {
	e.runs = append(e.runs, r)
	if e.before != nil {
		if err := e.before(e, len(e.runs)-1); err != nil {
			return err
		}
	}
	for range 3 {
		if e.follower != nil {
			if err := e.follower.Poll(e.now, e.steps); err != nil {
				e.t.Error(err)
			}
		}
		e.steps++
		e.now = e.now.Add(10 * time.Second / 3)
	}
	e.routers = append(e.routers, e.router)
	return nil
}

var two = []Arm{{"normal", "off"}, {"perfect", "perfect"}}

func planOf(blocks int) Plan {
	return Plan{Blocks: [][]Arm{{two[0], two[1], two[1], two[0]}, {two[1], two[0], two[0], two[1]}}[:blocks],
		Points: [][]string{{""}, {""}}}
}

// Every timed run has its own router from beginning to end, and stands in the order ABBA
// BAAB; the engine is left with its own.
func TestDriveAlternates(t *testing.T) {
	e, d := newEngine(t, 4)
	require.NoError(t, d.Drive(t.Context(), planOf(2)))
	var order, all string
	for i, r := range e.runs {
		letter := strings.ToUpper(r.Arm[:1])
		if r.Timed {
			order += letter
			if e.routers[i] != r.Router || e.routers[i-1] != r.Router {
				t.Errorf("run %d of %s ran under %s, after a run under %s", i, r.Arm, e.routers[i], e.routers[i-1])
			}
		} else {
			letter = strings.ToLower(letter)
		}
		all += letter
	}
	// untimed of both arms, then a run after each change
	if want := "npnNpPPnNpPnNNpP"; order != "NPPNPNNP" || all != want {
		t.Errorf("the runs were %s, want %s", all, want)
	}
	if len(d.Acks) != 4 {
		t.Errorf("%d acknowledgements, want 4", len(d.Acks))
	}
	e.run(Run{})
	if e.router != "off" {
		t.Errorf("the engine is left with %s", e.router)
	}
}

// What goes wrong ends in bounded time, in words that say what was seen.
func TestDriveEndsInAClearState(t *testing.T) {
	for _, c := range []struct {
		name    string
		set     func(*engine, *Driver)
		refused bool // found before anything was timed
		want    string
		most    int // runs
	}{
		{"an engine that reads no folder", func(e *engine, _ *Driver) { e.follower = nil }, true,
			"no rank has read the order within 2 runs", 2},
		{"a rank that does not acknowledge", func(_ *engine, d *Driver) { d.Ranks = 5 }, true,
			`4 of 5 ranks have read the order and only ranks ["0" "1" "2" "3"] acknowledged within`, 8},
		{"a router that the ranks refuse", func(e *engine, _ *Driver) {
			e.follower.Set = func(r string) error {
				if r == "off" {
					return nil
				}
				return errors.New("no cache")
			}
		}, true, "rank 0 says: no cache", 2},
		{"ranks that acknowledge another router", answering(func(a *Ack) { a.Router = "off" }), true,
			"asked for perfect by router perfect, rank 0 acknowledged perfect by router off", 2},
		{"ranks that all call themselves the first", answering(func(a *Ack) { a.Rank = 0 }), true,
			`4 of 4 ranks have read the order and only ranks ["0"] acknowledged within`, 8},
		{"ranks that answer an earlier order", answering(func(a *Ack) { a.Sequence-- }), true,
			"4 of 4 ranks have read the order and only ranks [] acknowledged within", 8},
		{"two engines of one rank in a folder", func(e *engine, d *Driver) {
			e.follower.Ranks = 1
			other := *e.follower
			e.before = func(e *engine, n int) error { // the other one is a little later
				if !e.runs[n].Timed {
					return nil
				}
				return other.Poll(e.now, 0)
			}
		}, false, "two engines answer as rank 0", 10},
		{"a driver that stands still for longer than the term", func(e *engine, d *Driver) {
			e.before = func(e *engine, n int) error {
				if n == 5 { // a timed run of the perfect arm
					e.now = e.now.Add(2 * term)
				}
				return nil
			}
		}, false, "block 1, segment 2 (perfect): the router was lost: on rank 0 the order for perfect expired", 6},
		{"an engine that stops following", func(e *engine, _ *Driver) {
			e.before = func(e *engine, n int) error {
				if n == 5 {
					e.follower = nil
				}
				return nil
			}
		}, false, "no rank has read the order", 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, d := newEngine(t, 4)
			c.set(e, d)
			err := d.Drive(t.Context(), planOf(2))
			var lost *Lost
			if !errors.As(err, &lost) || !strings.Contains(err.Error(), c.want) || lost.Timed == c.refused {
				t.Errorf("%v, %+v; want %q, refused %t", err, lost, c.want, c.refused)
			}
			if len(e.runs) > c.most {
				t.Errorf("%d runs, want at most %d", len(e.runs), c.most)
			}
			o, _, err := d.Channel.Read()
			if err != nil || o.Router != "off" || o.ExpiresNS <= e.now.UnixNano() {
				t.Errorf("the last order is %+v, %v; want the engine's own router", o, err)
			}
		})
	}
}

// answering makes the ranks say something else than is so.
func answering(lie func(*Ack)) func(*engine, *Driver) {
	return func(e *engine, _ *Driver) { e.follower.Lie = lie }
}

// Each block is an order and its reverse; over two blocks each arm begins one, and pairs likewise.
func TestOrders(t *testing.T) {
	three, different := append(slices.Clone(two), Arm{"drawn", "zipf"}), false
	for launch := range 4 {
		for _, arms := range [][]Arm{two, three} {
			blocks := Blocks(arms, 2, launch, 7)
			for _, o := range blocks {
				if !slices.Equal(o, reversed(o)) || len(o) != 2*len(arms) {
					t.Errorf("%v is no order and its reverse", o)
				}
			}
			if !slices.Equal(blocks[0][:len(arms)], reversed(blocks[1][:len(arms)])) {
				t.Errorf("%v are not mirrored", blocks)
			}
			different = different || !slices.Equal(blocks[0], Blocks(arms, 2, 0, 7)[0])
		}
	}
	if !different {
		t.Error("all orders are alike")
	}
}
