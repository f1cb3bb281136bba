package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
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
}

// Driver leads one launch. All fields are to be set before Drive, but for Ranks.
type Driver struct {
	Channel Folder
	Ranks   int // that must acknowledge; 0: as many as the answers name

	Now   func() time.Time
	Sleep func(context.Context, time.Duration) error
	// Run runs the client once, to its end.
	Run   func(context.Context, Run) error
	Block func(block int) // told after each block

	lock   sync.Mutex
	order  Order
	now    Arm // that all ranks have acknowledged; zero where that is not known
	timed  bool
	number int
	Acks   []Ack       // the ranks' answers when all had changed for the last time
	before map[int]Ack // by rank: its last answer
}

// The protocol's times.
const (
	term    = time.Minute      // an order holds so long
	renewal = 10 * time.Second // between renewals
	settle  = time.Second      // for answers that come after a run's end
	look    = 20 * time.Millisecond
)

// mostTries bounds the runs for one change.
const mostTries = 3

// Lost is a router that is not the one that was ordered. An engine that has not changed its router before anything
// was timed cannot be measured this way.
type Lost struct {
	Seen  string
	Timed bool
}

func (l *Lost) Error() string {
	if l.Timed {
		return "the router was lost: " + l.Seen
	}
	return "the engine does not follow: " + l.Seen
}

func (d *Driver) lost(format string, args ...any) error {
	return &Lost{fmt.Sprintf(format, args...), d.timed}
}

// renew renews the order until it is ended, so that it holds no longer than the driver lives.
func (d *Driver) renew(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		for d.Sleep(ctx, renewal) == nil && ctx.Err() == nil {
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
	d.order.ExpiresNS = d.Now().Add(term).UnixNano()
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

// Drive takes the launch through its plan. However it ends, the engine is told to go back
// to its own router.
func (d *Driver) Drive(ctx context.Context, p Plan) (err error) {
	d.before = map[int]Ack{}
	end := d.renew(ctx)
	defer func() {
		end()
		if d.order.Sequence > 0 {
			err = errors.Join(err, d.to(Arm{"normal", Off})) // as before any order
		}
	}()
	for _, arm := range p.Blocks[0][:len(p.Blocks[0])/2] { // so that the first block begins with a change
		if err := d.change(ctx, arm, -1, p.Points[0][0]); err != nil {
			return err
		}
		for _, point := range p.Points[0][1:] {
			if err := d.Run(ctx, d.next(arm, -1, 0, point, false)); err != nil {
				return err
			}
		}
	}
	for b, order := range p.Blocks {
		for place, arm := range order {
			if err := d.segment(ctx, p, arm, b, place); err != nil {
				return fmt.Errorf("block %d, segment %d (%s): %w", b+1, place+1, arm.Name, err)
			}
		}
		d.Block(b)
	}
	return nil
}

// segment measures an arm at all points, under an order of its own for each where the plan wants that.
func (d *Driver) segment(ctx context.Context, p Plan, arm Arm, block, place int) error {
	for i, point := range p.Points[block] {
		if i == 0 && d.now != arm || p.Separate {
			if err := d.change(ctx, arm, block, point); err != nil {
				return err
			}
		}
		d.timed = true
		if err := d.Run(ctx, d.next(arm, block, place, point, true)); err != nil {
			return err
		}
		if done, _, err := d.answered(); err != nil || !done {
			return cmp.Or(err, d.lost("a rank's answer is gone"))
		}
	}
	return nil
}

// change orders an arm, and runs the client untimed until every rank has it.
func (d *Driver) change(ctx context.Context, arm Arm, block int, point string) error {
	if err := d.to(arm); err != nil {
		return fmt.Errorf("ordering the router: %w", err)
	}
	began := d.Now()
	for try := 1; ; try++ {
		if err := d.Run(ctx, d.next(arm, block, 0, point, false)); err != nil {
			return err
		}
		done, seen, err := d.wait(ctx)
		switch {
		case err != nil:
			return err
		case done:
			d.now = arm
			return nil
		case try < 2, seen > 0 && (try < mostTries || d.Now().Sub(began) < term):
			continue
		}
		return d.missing(seen, try)
	}
}

// missing says which ranks have not answered, after so many runs.
func (d *Driver) missing(seen, runs int) error {
	of, have := max(d.Ranks, seen), []string(nil)
	for _, a := range d.Acks {
		of, have = max(of, a.Ranks), append(have, fmt.Sprint(a.Rank))
	}
	within := fmt.Sprintf("within %d runs of the client", runs)
	if seen > 0 {
		return d.lost("%d of %d ranks have read the order and only ranks %q acknowledged %s", seen, of, have, within)
	}
	return d.lost("no rank has read the order %s: was the server started with the hook and MOEBALANCE_CONTROL of this "+
		"folder?", within)
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
		if err := d.refused(a); err != nil {
			return false, seen, err
		}
		// A rank answers an order once, and its steps go up.
		if d.Ranks == 0 && (before.Sequence == a.Sequence && before.TimeNS != a.TimeNS || before.Steps > a.Steps) {
			return false, seen, d.lost("two engines answer as rank %d in one folder: start each with a folder of its own",
				a.Rank)
		}
		if d.Ranks == 0 {
			want = max(want, a.Ranks)
		}
	}
	d.Acks = acks
	return len(ranks) > 0 && len(ranks) >= want, max(seen, len(ranks)), nil
}

// refused says why an answer to the order in force is no acknowledgement; nil where it is one.
func (d *Driver) refused(a Ack) error {
	switch {
	case a.Error != "":
		return d.lost("rank %d says: %s", a.Rank, a.Error)
	case a.Expired:
		return d.lost("on rank %d the order for %s expired: was this program stopped for a while?", a.Rank, d.order.Arm)
	case a.Arm != d.order.Arm || a.Router != "" && a.Router != d.order.Router:
		return d.lost("asked for %s by router %s, rank %d acknowledged %s by router %s", d.order.Arm, d.order.Router, a.Rank,
			cmp.Or(a.Arm, "no arm"), cmp.Or(a.Router, "unknown"))
	case d.Ranks == 0 && a.Ranks < 1:
		return d.lost("rank %d does not say how many ranks there are: give --ranks N", a.Rank)
	}
	return nil
}

// next is the next run of the client.
func (d *Driver) next(arm Arm, block, place int, point string, timed bool) Run {
	d.number++
	return Run{Number: d.number - 1, Block: block, Place: place, Arm: arm.Name, Router: arm.Router,
		Sequence: d.order.Sequence, Point: point, Timed: timed}
}
