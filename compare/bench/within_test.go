package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"github.com/moebalance/moebalance/compare/bench/control"
	"github.com/moebalance/moebalance/compare/bench/proof"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/testdata/require"
)

// slope is by how much of its time under balanced logits the engine takes longer for each unit of imbalance.
const slope = 0.2

// playEngine is a server of two ranks that follows the folder of its environment, gains a
// tenth under balanced logits, and goes wrong in the request that the mode names, or from it on:
// "die 5", "fail 5", "sham 0", "even 0", "wrong 0", "lose 5", "slip 5" (loses its router in first attempts only).
func playEngine(addr, mode string) int {
	fault, at, _ := strings.Cut(mode, " ")
	when, _ := strconv.Atoi(at)
	ranks := 2
	routed, counts, requests, last := "off", os.Getenv("MOEBALANCE_COUNTS"), 0, 0
	folder := os.Getenv(controlVariable)
	write := func(name string, value any) {
		text, _ := json.Marshal(value)
		_ = os.WriteFile(filepath.Join(folder, name), text, 0o644)
	}
	changed := func(sequence int) { // writes the counts of an order that ends
		if counts == "" || sequence == 0 {
			return
		}
		shown := routed
		switch {
		case requests < when:
		case fault == "sham": // says that it has changed, and has not
			shown = "off"
		case fault == "even": // is always balanced
			shown = "perfect"
		}
		of := filepath.Join(counts, fmt.Sprintf("sequence%d", sequence))
		_ = os.MkdirAll(of, 0o755)
		_ = os.WriteFile(filepath.Join(of, "new"), []byte(shown), 0o644)
		_ = os.Rename(filepath.Join(of, "new"), filepath.Join(of, "router")) // it may be ended between two writes
	}
	follow := func(steps int64) {
		var o control.Order
		text, _ := os.ReadFile(filepath.Join(folder, "arm.json"))
		if json.Unmarshal(text, &o) != nil || o.Sequence == last {
			return
		}
		changed(last)
		a := control.Ack{Sequence: o.Sequence, Arm: o.Arm, Router: o.Router, Steps: steps,
			TimeNS: time.Now().UnixNano(), Ranks: ranks}
		if last, routed = o.Sequence, o.Router; fault == "wrong" {
			a.Error = "no table for " + o.Router
		}
		for a.Rank = range ranks {
			write(fmt.Sprintf("seen.rank%d.json", a.Rank), o)
			write(fmt.Sprintf("ack.rank%d.json", a.Rank), a)
		}
	}
	var lock sync.Mutex
	steps, unwritten := int64(0), flock.New(filepath.Join(counts, ".unwritten.rank0"))
	http.HandleFunc("/health", func(http.ResponseWriter, *http.Request) {})
	http.HandleFunc("/bench", func(w http.ResponseWriter, r *http.Request) {
		lock.Lock()
		defer lock.Unlock()
		requests++
		if requests == when {
			switch fault {
			case "die":
				os.Exit(3)
			case "fail":
				http.Error(w, "out of memory", 500)
				return
			}
		}
		for range 3 {
			if folder != "" {
				follow(steps)
			}
			steps++
		}
		if requests == when && (fault == "lose" || fault == "slip" && strings.Contains(counts, "-1/")) {
			write("ack.rank0.json", control.Ack{Sequence: last, Ranks: ranks, Expired: true})
		}
		if counts != "" { // they are in files a moment after the last request, as the hook's are
			_, _ = os.MkdirAll(counts, 0o755), unwritten.Lock()
			time.AfterFunc(400*time.Millisecond, func() {
				lock.Lock() // or an order is written with the router of the one before
				defer lock.Unlock()
				changed(last)
				_ = unwritten.Unlock()
			})
		}
		rate := 1000.0 + float64(requests%3)
		if told := (control.Arm{Router: routed}).Target(); told > 0 {
			rate *= 1.1 / (1 + slope*(told-1))
		}
		fmt.Fprintf(w, "============ Serving Benchmark Result ============\nSuccessful requests:                     10\n"+
			"Benchmark duration (s):  %g\nTotal input tokens:  90\nTotal generated tokens:  10\n"+
			"Request throughput (req/s):  %g\nOutput token throughput (tok/s):  %g\nMean TTFT (ms):  %g\nMean TPOT (ms):  %g\n",
			10/rate, rate, rate, 1e4/rate, 2e4/rate)
	})
	if err := http.ListenAndServe(addr, nil); err != nil {
		return 9
	}
	return 0
}

// engineCounts reads what playEngine wrote.
func engineCounts(path, _ string) (proof.LoadProof, error) {
	text, err := os.ReadFile(filepath.Join(path, "router"))
	if err != nil {
		return proof.LoadProof{}, err
	}
	c := proof.LoadProof{Source: path, Ranks: 2, RankMaxOverMean: 1.5, RankFloor: 1, RankMean: 1.5,
		ExpertMaxOverMean: 2, ExpertFloor: 1}
	if told := router.Number(control.Arm{Router: string(text)}.Target()); told > 0 {
		c.RankMaxOverMean, c.RankMean, c.ExpertMaxOverMean = told, told, told
	}
	return c, nil
}

// withinSpec is a campaign whose launches hold both arms, on an engine of that mode.
func withinSpec(t *testing.T, launches int, mode string) Spec {
	t.Helper()
	s := testSpec(1)
	s.Treatment = require.Value(ParseTreatment("hook"))
	addr := freeAddress(t)
	self := s.Command.Normal[0]
	s.Design = Design{Launches: launches, Seed: 1}
	s.Command = Command{
		Server: []string{"env", childVariable + "=engine", self, addr, mode}, Ready: "http://" + addr + "/health",
		Normal: []string{self, "http://" + addr + "/bench?seed={seed}"},
	}
	return s
}

func withinHost() Host {
	h := testHost("client")
	h.Counts, h.Sleep = engineCounts, pause
	return h
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// Launches hold both arms: the gain is found in files named by seed, balance is measured under
// every order, and a reopened campaign says the same.
func TestWithinLaunch(t *testing.T) {
	spec := withinSpec(t, 3, "")
	spec.Output = "{out}/r-{seed}.txt"
	spec.Command.Normal = append(spec.Command.Normal, spec.Output)
	c := create(t, spec)
	defer syscall.Umask(syscall.Umask(0)) // all may then write the control folder
	blocks, h := 0, withinHost()
	h.Report = func(e Event) {
		if e.Stage == Measured {
			blocks++
		}
	}
	require.NoError(t, c.Run(t.Context(), h))
	r := gain.Judge(Recorded(c))
	if r.Gain.N != 3 || r.Gain.Estimate < .098 || r.Gain.Estimate > .102 || r.Balance != gain.Measured || blocks != 6 {
		t.Errorf("gain %+v, balance %s, %d blocks; want 10 %% of 3 launches, measured, and 6", r.Gain, r.Balance, blocks)
	}
	for _, l := range r.Launches {
		orders := []string{l.Blocks[0].Order, l.Blocks[1].Order}
		if slices.Sort(orders); !slices.Equal(orders, []string{"ABBA", "BAAB"}) || len(l.Blocks) != 2 {
			t.Errorf("orders %v, want one of each in a launch", orders)
		}
	}
	for _, l := range c.Launches {
		if a := l.Attempts[0]; len(a.Segments) != 16 || !slices.Equal(a.Warnings, []string{openControl}) ||
			a.Orders[len(a.Orders)-1].Counted == nil {
			t.Errorf("%d runs in launch %d, want 16, and the last counted, warnings %q", len(a.Segments), l.Position, a.Warnings)
		}
	}
	if failed := r.Failed(); len(failed) > 0 {
		t.Errorf("%+v", failed)
	}
	again := reopen(t, c)
	before := require.Value(json.Marshal(r))
	if after, err := json.Marshal(gain.Judge(Recorded(again))); err != nil || string(after) != string(before) {
		t.Errorf("read back %s, was %s: %v", after, before, err)
	}
}

// Whatever goes wrong ends soon and in a state that says what was seen.
func TestWithinEndsInAClearState(t *testing.T) {
	for mode, c := range map[string]struct {
		want  string
		timed bool
		ended State // the first launch
	}{
		"die 6":   {"the server ended before the benchmark did", false, Failed},
		"fail 6":  {"block 1, segment 2 (normal): the command ended with exit status 9", false, Failed},
		"wrong 0": {"rank 0 says: no table for perfect", false, Lost},
		"lose 6":  {"the router was lost: on rank 0 the order", true, Lost},
	} {
		t.Run(mode, func(t *testing.T) {
			s := withinSpec(t, 2, mode)
			folder := filepath.Join(t.TempDir(), "c")
			c1 := require.Value(Create(folder, s, time.Unix(1, 0)))
			defer c1.Close()
			h := withinHost()
			began := time.Now()
			err := c1.Run(t.Context(), h)
			var lost *control.Lost
			if errors.As(err, &lost) != (c.ended == Lost) || !strings.Contains(fmt.Sprint(err), c.want) ||
				lost != nil && lost.Timed != c.timed {
				t.Errorf("%v, %+v; want %+v", err, lost, c)
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("it took %v to find that", took)
			}
			if a := c1.Launches[0].Attempts; len(a) != 1 || a[0].State != c.ended {
				t.Errorf("attempts %+v, want one that %s", a, c.ended)
			}
		})
	}
}

// A launch that lost its router is started again by the next run: it chooses no result, and the result says how many
// there were.
func TestLostRouters(t *testing.T) {
	c := create(t, withinSpec(t, 2, "slip 6"))
	for attempts := 1; c.Left() > 0; attempts++ {
		if err := c.Run(t.Context(), withinHost()); (err == nil) != (c.Left() == 0) || attempts > 3 {
			t.Fatal(err)
		}
	}
	if r := gain.Judge(Recorded(c)); r.Gain.N != 2 || len(c.Launches[1].Attempts) != 2 ||
		!strings.Contains(r.Launches[0].Note, "attempt 1 lost: ") {
		t.Errorf("gain %+v, note %q", r.Gain, r.Launches[0].Note)
	}
}

// Counts that contradict what was acknowledged refuse the campaign: the measured gain is none of balance.
func TestWithinCountsContradict(t *testing.T) {
	for mode, arm := range map[string]gain.Arm{"sham 0": gain.Perfect, "sham 8": gain.Perfect, "even 8": gain.Normal} {
		c := create(t, withinSpec(t, 2, mode))
		require.NoError(t, c.Run(t.Context(), withinHost()))
		r := gain.Judge(Recorded(c))
		if r.Verdict != gain.Invalid || r.Balance != gain.None ||
			!slices.ContainsFunc(r.Proof, func(p gain.Proof) bool { return p.Arm == arm && p.Grade == gain.None }) {
			t.Errorf("%s: verdict %s, balance %s, proof %+v", mode, r.Verdict, r.Balance, r.Proof)
		}
	}
}

// Routers of a known imbalance, as arms of each launch, give the line of time over the imbalance that counts
// measure, of which the learned router is no part.
func TestWithinDose(t *testing.T) {
	s := withinSpec(t, 2, "")
	for _, text := range []string{"target-1.2=target:1.2", "target-1.5=target:1.5"} {
		s.Arms = append(s.Arms, require.Value(ParseArm(text)))
	}
	c := create(t, s)
	require.NoError(t, c.Run(t.Context(), withinHost()))
	r := gain.Judge(Recorded(c))
	d := r.Comparisons[0].Dose
	if d == nil || len(d.Arms) != 4 || math.Abs(float64(d.Slope)-slope) > 0.01 || d.N != 2 {
		t.Fatalf("%+v", d)
	}
	for i, want := range []struct {
		arm  gain.Arm
		load router.Number
		time float64
	}{{gain.Perfect, 1, 1}, {"target-1.2", 1.2, 1.04}, {gain.Normal, 1.5, 1.1}, {"target-1.5", 1.5, 1.1}} {
		if a := d.Arms[i]; a.Arm != want.arm || a.MaxOverMean != want.load || !a.Measured ||
			math.Abs(float64(a.Time)-want.time) > 0.005 || a.Fitted == (a.Arm == gain.Normal) {
			t.Errorf("%+v, want %+v", a, want)
		}
	}
}

// A campaign that was killed keeps its finished launches and repeats the broken one.
func TestWithinResumes(t *testing.T) {
	c := create(t, withinSpec(t, 3, ""))
	ctx, cancel := context.WithCancelCause(t.Context())
	h := withinHost()
	killed := errors.New("killed")
	h.Report = func(e Event) {
		if e.Stage == Measured && e.Launch.Position == 1 {
			cancel(killed)
		}
	}
	if err := c.Run(ctx, h); !errors.Is(err, killed) {
		t.Fatal(err)
	}
	if c.Finished() != 1 || c.Left() != 2 {
		t.Fatalf("%d finished, %d left", c.Finished(), c.Left())
	}
	require.NoError(t, os.Chmod(c.Folder, 0o777)) // all may now put other folders in place of the launches'
	again := reopen(t, c)
	require.NoError(t, again.Run(t.Context(), withinHost()))
	a := again.Launches[1].Attempts
	if len(a) != 2 || a[0].State != Interrupted || a[1].State != Finished || len(again.Launches[0].Attempts) != 1 ||
		len(a[0].Warnings) > 0 || !slices.Equal(a[1].Warnings, []string{openControl}) {
		t.Errorf("attempts at launch 1: %+v", a)
	}
	if r := gain.Judge(Recorded(again)); r.Gain.N != 3 || len(r.Launches[1].Blocks) != 2 {
		t.Errorf("gain %+v", r.Gain)
	}
}
