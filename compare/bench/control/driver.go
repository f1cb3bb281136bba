package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Run is one run of the client under one order.
type Run struct {
	Number   int    `json:"number"` // of the launch's runs, from 0
	Block    int    `json:"block"`  // from 0; −1 before the first
	Place    int    `json:"place"`  // in its block
	Arm      string `json:"arm"`
	Router   string `json:"router"`
	Sequence int    `json:"sequence"`
	Point    string `json:"point,omitempty"`
	Timed    bool   `json:"timed"`
	// Limit is how long it may take; it follows from the runs before.
	Limit time.Duration `json:"-"`
}

// Driver leads one launch. All fields are to be set before Drive, but for Ranks.
type Driver struct {
	Channel Channel
	Ranks   int // that must acknowledge; 0: as many as the answers name

	Now   func() time.Time
	Sleep func(context.Context, time.Duration) error
	// Run runs the client once, to its end.
	Run func(context.Context, Run) error
	// Ready is asked once, when all arms have been acknowledged and before anything is timed;
	// nil asks nobody.
	Ready func() error
	// Settled says of every timed segment, in order, which of the runs counted: false for one
	// whose router was not there to its end.
	Settled func(r []Run, counts bool)
	// Block is told after each block; nil tells nobody.
	Block func(block int)
	First time.Duration // limit of the first run

	lock    sync.Mutex
	order   Order
	now     Arm // that all ranks have acknowledged; zero where that is not known
	timed   bool
	number  int
	longest time.Duration
	acks    []Ack
	before  map[int]Ack // by rank: its last answer
}

// The protocol's times.
const (
	Term    = time.Minute      // an order holds so long
	Renewal = 10 * time.Second // between renewals
	settle  = time.Second      // for answers that come after a run's end
	look    = 20 * time.Millisecond
)

// Shortest is the least that a run of the client may take which is not the first; tests
// change it.
var Shortest = time.Minute

// mostTries bounds the runs for one change, and the changes and repetitions for one segment.
const mostTries = 3

// NotFollowed is an engine that did not change its router before anything was timed: it
// cannot be measured this way.
type NotFollowed struct{ Seen string }

func (e *NotFollowed) Error() string { return "the engine does not follow: " + e.Seen }

// errLost is a router that was not there to the end of a segment.
var errLost = errors.New("the router was lost")

// renew renews the order until it is ended, so that it holds no longer than the driver lives.
func (d *Driver) renew(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		for d.Sleep(ctx, Renewal) == nil && ctx.Err() == nil {
			_ = d.write(func(*Order) {}) // a folder that is gone shows in the next change
		}
	})
	return func() { cancel(); running.Wait() }
}

func (d *Driver) write(change func(*Order)) error {
	d.lock.Lock()
	defer d.lock.Unlock()
	change(&d.order)
	if d.order.Sequence == 0 {
		return nil // nothing was ordered yet
	}
	d.order.ExpiresNS = d.Now().Add(Term).UnixNano()
	return d.Channel.Write(d.order)
}

// to orders an arm.
func (d *Driver) to(arm Arm) error {
	return d.write(func(o *Order) { o.Sequence, o.Arm, o.Router = o.Sequence+1, arm.Name, arm.Router })
}

// The routers that every engine has.
const (
	Off     = "off" // its own
	Perfect = "perfect"
)

// own is the engine's router before any order.
var own = Arm{"normal", Off}

// Acks are the ranks' answers when all had changed for the last time.
func (d *Driver) Acks() []Ack { return d.acks }

// Drive takes the launch through its plan. However it ends, the engine is told to go back
// to its own router.
func (d *Driver) Drive(ctx context.Context, p Plan) (err error) {
	d.before = map[int]Ack{}
	end := d.renew(ctx)
	defer func() {
		end()
		if d.order.Sequence > 0 {
			err = errors.Join(err, d.to(own))
		}
	}()
	for _, arm := range p.first() {
		if err := d.change(ctx, arm, -1, p.pointsOf(0)[0]); err != nil {
			return err
		}
		for _, point := range p.pointsOf(0)[1:] {
			if err := d.run(ctx, d.next(arm, -1, 0, point, false)); err != nil {
				return err
			}
		}
	}
	for b, order := range p.Blocks {
		for place, arm := range order {
			groups := [][]string{p.pointsOf(b)}
			if p.Separate {
				groups = slices.Collect(slices.Chunk(groups[0], 1))
			}
			for _, points := range groups {
				if p.Separate {
					d.now = Arm{} // so that a new order is written
				}
				if err := d.segment(ctx, arm, b, place, points); err != nil {
					return fmt.Errorf("block %d, segment %d (%s): %w", b+1, place+1, arm.Name, err)
				}
			}
		}
		if d.Block != nil {
			d.Block(b)
		}
	}
	return nil
}

// segment measures an arm at all points, again where the router was lost meanwhile.
func (d *Driver) segment(ctx context.Context, arm Arm, block, place int, points []string) error {
	for try := 1; ; try++ {
		if d.now != arm {
			if err := d.change(ctx, arm, block, points[0]); err != nil {
				return err
			}
		}
		if !d.timed && d.Ready != nil {
			if err := d.Ready(); err != nil {
				return err
			}
		}
		d.timed = true
		var runs []Run
		for i, point := range points {
			runs = append(runs, d.next(arm, block, place, point, true))
			if err := d.run(ctx, runs[i]); err != nil {
				return err
			}
		}
		done, _, err := d.answered()
		if err == nil && !done {
			err = fmt.Errorf("%w: a rank's answer is gone", errLost)
		}
		d.Settled(runs, err == nil)
		if err == nil || try == mostTries || !errors.Is(err, errLost) {
			return err
		}
		d.now = Arm{}
	}
}

// change orders an arm, and runs the client untimed until every rank has it.
func (d *Driver) change(ctx context.Context, arm Arm, block int, point string) (err error) {
	for try := 1; ; try++ {
		err = d.tryChange(ctx, arm, block, point)
		if try == mostTries || !errors.Is(err, errLost) || ctx.Err() != nil {
			break
		}
	}
	if errors.Is(err, errLost) && !d.timed {
		return &NotFollowed{err.Error()}
	}
	return err
}

func (d *Driver) tryChange(ctx context.Context, arm Arm, block int, point string) error {
	if err := d.to(arm); err != nil {
		return fmt.Errorf("ordering the router: %w", err)
	}
	began := d.Now()
	for try := 1; ; try++ {
		if err := d.run(ctx, d.next(arm, block, 0, point, false)); err != nil {
			return err
		}
		done, seen, err := d.wait(ctx)
		switch {
		case err != nil:
			return err
		case done:
			d.now = arm
			return nil
		case try < 2, seen > 0 && (try < mostTries || d.Now().Sub(began) < Term):
			continue
		}
		return d.missing(seen, try)
	}
}

// missing says which ranks have not answered, after so many runs.
func (d *Driver) missing(seen, runs int) error {
	of, have := max(d.Ranks, seen), []string(nil)
	for _, a := range d.acks {
		of, have = max(of, a.Ranks), append(have, fmt.Sprint(a.Rank))
	}
	text := "no rank has read the order"
	switch {
	case len(have) > 0:
		text = fmt.Sprintf("of %d ranks only %s acknowledged", of, strings.Join(have, ", "))
	case seen > 0:
		text = fmt.Sprintf("%d of %d ranks have read the order and none acknowledged", seen, of)
	}
	if text += fmt.Sprintf(" within %d runs of the client", runs); seen == 0 {
		text += ": was the server started with the hook and MOEBALANCE_CONTROL of this folder?"
	}
	if d.timed {
		return errors.New(text)
	}
	return &NotFollowed{text}
}

// wait looks for the answers for a moment: they may come after the run's end.
func (d *Driver) wait(ctx context.Context) (done bool, seen int, err error) {
	for waited := time.Duration(0); ; waited += look {
		done, seen, err = d.answered()
		if done || err != nil || waited >= settle {
			return done, seen, err
		}
		if err := d.Sleep(ctx, look); err != nil {
			return false, seen, context.Cause(ctx)
		}
	}
}

// answered reports whether every rank has the order; an error tells of one that refused it
// or lost it.
func (d *Driver) answered() (done bool, seen int, err error) {
	acks, seen, err := d.Channel.Answers(d.order.Sequence)
	if err != nil {
		return false, 0, fmt.Errorf("reading the ranks' answers: %w", err)
	}
	want, ranks := d.Ranks, map[int]bool{}
	acks = slices.DeleteFunc(acks, func(a Ack) bool { return a.Sequence != d.order.Sequence })
	for _, a := range acks {
		before := d.before[a.Rank]
		ranks[a.Rank], d.before[a.Rank] = true, a
		if refused := d.refused(a); refused != "" {
			return false, seen, fmt.Errorf("%w: %s", errLost, refused)
		}
		// A rank answers an order once, and its steps go up.
		if d.Ranks == 0 && (before.Sequence == a.Sequence && before.TimeNS != a.TimeNS || before.Steps > a.Steps) {
			return false, seen, fmt.Errorf("two engines answer as rank %d in one folder: start each with a folder of its own",
				a.Rank)
		}
		if d.Ranks == 0 {
			want = max(want, a.Ranks)
		}
	}
	d.acks = acks
	return len(ranks) > 0 && len(ranks) >= want, max(seen, len(ranks)), nil
}

// refused says why an answer to the order in force is no acknowledgement; empty where it is one.
func (d *Driver) refused(a Ack) string {
	switch {
	case a.Error != "":
		return fmt.Sprintf("rank %d says: %s", a.Rank, a.Error)
	case a.Expired:
		return fmt.Sprintf("on rank %d the order for %s expired: was this program stopped for a while?", a.Rank, d.order.Arm)
	case a.Arm != d.order.Arm || a.Router != "" && a.Router != d.order.Router:
		return fmt.Sprintf("asked for %s by router %s, rank %d acknowledged %s by router %s", d.order.Arm, d.order.Router,
			a.Rank, cmp.Or(a.Arm, "no arm"), cmp.Or(a.Router, "unknown"))
	case d.Ranks == 0 && a.Ranks < 1:
		return fmt.Sprintf("rank %d does not say how many ranks there are: give --ranks N", a.Rank)
	}
	return ""
}

// next is the next run of the client.
func (d *Driver) next(arm Arm, block, place int, point string, timed bool) Run {
	r := Run{Number: d.number, Block: block, Place: place, Arm: arm.Name, Router: arm.Router,
		Sequence: d.order.Sequence, Point: point, Timed: timed, Limit: d.First}
	if r.Number > 0 {
		r.Limit = Shortest + 5*d.longest
	}
	d.number++
	return r
}

func (d *Driver) run(ctx context.Context, r Run) error {
	began := d.Now()
	err := d.Run(ctx, r)
	d.longest = max(d.longest, d.Now().Sub(began))
	return err
}
