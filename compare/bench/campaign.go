package bench

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"
)

// Campaign is a spec, the order of its launches, and what came of them so far.
type Campaign struct {
	Folder   string    `json:"-"`
	ID       string    `json:"id"` // marks the processes of this campaign
	Created  time.Time `json:"created"`
	Spec     Spec      `json:"spec"`
	Launches []Launch  `json:"launches"` // in the order of launching

	store store
	lock  *flock.Flock // nil when open only for reading
}

// ErrExists is a folder that is taken, whose campaign can be resumed.
var ErrExists = errors.New("the folder already holds a campaign: choose another folder, or resume it")

// ErrTaken is a folder with launches that are not a campaign's.
var ErrTaken = errors.New("want a folder without launches of something else")

// Create writes a new campaign of a checked spec into folder, which is made if it is missing, in place of one of which
// no launch has finished or runs. A folder with another campaign is ErrExists, and one of launches that no campaign
// made ErrTaken: they would be written over.
func Create(folder string, spec Spec, now time.Time) (*Campaign, error) {
	launches := filepath.Join(folder, launchesFolder)
	if _, err := os.Lstat(launches); err == nil && !IsCampaign(folder) {
		return nil, fmt.Errorf("%s: %w: choose another folder", launches, ErrTaken)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	lock, err := takeLock(folder)
	if err != nil {
		return nil, err
	}
	if old, err := Open(folder); IsCampaign(folder) && (err != nil || old.Close() != nil || old.begun()) {
		return nil, errors.Join(fmt.Errorf("%s: %w", folder, ErrExists), lock.Close())
	}
	fresh := Campaign{ID: rand.Text(), Created: now.UTC(), Spec: spec, Launches: spec.plan()}
	if err := cmp.Or(os.RemoveAll(launches), createStore(folder, fresh)); err != nil {
		return nil, errors.Join(fmt.Errorf("writing the campaign in %s: %w", folder, err), lock.Close())
	}
	return open(folder, lock)
}

// Open opens a campaign for reading, also while another process runs it.
func Open(folder string) (*Campaign, error) { return open(folder, nil) }

// Resume opens a campaign to continue it, or only to read it if no launch is left.
// It fails while another process runs it.
func Resume(folder string) (*Campaign, error) {
	c, err := Open(folder)
	if err != nil || c.Left() == 0 {
		return c, err
	}
	lock, err := takeLock(folder)
	if err := errors.Join(err, c.Close()); err != nil {
		return nil, err
	}
	return open(folder, lock)
}

// open opens a campaign to read, or to write where the lock is held.
func open(folder string, lock *flock.Flock) (*Campaign, error) {
	s, err := openStore(folder, lock != nil)
	if err != nil {
		if lock != nil {
			lock.Close()
		}
		return nil, err
	}
	c, err := s.load()
	c.Folder, c.store, c.lock = folder, s, lock
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", folder, err), c.Close())
	}
	return &c, nil
}

const lockName = "campaign.lock"

// lockWait is how long a lock is waited for: a killed run's system call may hold it for a moment.
const lockWait = 2 * time.Second

// takeLock takes the lock of the one who may write, which the system gives back when the process ends, however it ends.
func takeLock(folder string) (*flock.Flock, error) {
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	lock := flock.New(filepath.Join(folder, lockName))
	_, err := lock.TryLockContext(ctx, lockWait/20)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("%s: another process is running this campaign: wait for it to end", folder)
	}
	return lock, err
}

// Close closes the campaign file and releases the lock.
func (c *Campaign) Close() error {
	err := c.store.db.Close()
	if c.lock != nil {
		err = errors.Join(err, c.lock.Close())
	}
	return err
}

// begun reports a campaign with an attempt that has finished or may run.
func (c *Campaign) begun() bool {
	kept := func(a Attempt) bool { return slices.Contains([]State{Started, Ran, Finished}, a.State) }
	return slices.ContainsFunc(c.Launches, func(l Launch) bool { return slices.ContainsFunc(l.Attempts, kept) })
}

// Left counts the launches still to be done.
func (c *Campaign) Left() int { return len(c.Launches) - c.Finished() }

// Finished counts the launches that are done.
func (c *Campaign) Finished() (n int) {
	for _, l := range c.Launches {
		if _, done := l.Done(); done {
			n++
		}
	}
	return n
}
