package control

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Follower is an engine's side of the protocol for ranks that live in one process, and so
// change at the same step.
type Follower struct {
	Side  Folder
	Ranks int
	Own   string               // the router before any order, and after one that expired
	Set   func(r string) error // changes the router; an error leaves it as it is
	Lie   func(*Ack)           // changes an answer; may be nil

	order   Order
	router  string
	expired bool
}

// Poll obeys the last order. It is called between two steps, so many of which were done.
func (f *Follower) Poll(now time.Time, steps int64) error {
	o, ok, err := f.Side.Read()
	switch {
	case err != nil || !ok:
		return err
	case o.Sequence != f.order.Sequence:
		for r := range f.Ranks {
			if err := f.Side.See(r, o.Sequence); err != nil {
				return err
			}
		}
		f.expired = false
		return f.obey(o, o.Router, now, steps)
	case !f.expired:
		f.order.ExpiresNS = o.ExpiresNS
	}
	if !f.expired && now.UnixNano() > f.order.ExpiresNS && f.router != f.Own {
		f.expired = true
		return f.obey(f.order, f.Own, now, steps)
	}
	return nil
}

func (f *Follower) obey(o Order, router string, now time.Time, steps int64) error {
	a := Ack{Sequence: o.Sequence, Arm: o.Arm, Steps: steps, TimeNS: now.UnixNano(), Ranks: f.Ranks, Expired: f.expired}
	if err := f.Set(router); err != nil {
		a.Error = err.Error()
	} else {
		f.router = router
	}
	f.order, a.Router = o, f.router
	for a.Rank = range f.Ranks {
		said := a
		if f.Lie != nil {
			f.Lie(&said)
		}
		if err := f.Side.Answer(said); err != nil {
			return err
		}
	}
	return nil
}

// Answer is a rank's side: it replaces the rank's last answer.
func (f Folder) Answer(a Ack) error { return save(f, fmt.Sprintf("ack.rank%d.json", a.Rank), a) }

// See is a rank's side: it says that the rank has read the order.
func (f Folder) See(rank, sequence int) error {
	return save(f, fmt.Sprintf("seen.rank%d.json", rank), map[string]int{"sequence": sequence})
}

// Read is a rank's side: the order as it stands; false while there is none.
func (f Folder) Read() (o Order, ok bool, err error) {
	text, err := os.ReadFile(filepath.Join(string(f), orderName))
	if os.IsNotExist(err) {
		return o, false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &o)
	}
	return o, err == nil, err
}
