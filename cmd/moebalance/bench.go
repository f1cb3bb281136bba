package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/compare/bench"
	"github.com/moebalance/moebalance/compare/bench/control"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/source"
)

// answer starts or resumes a campaign, sees it through and judges it.
func (o *benchOptions) answer(c call) (d document, err error) {
	if err := o.check(c); err != nil {
		return d, err
	}
	campaign, err := o.open()
	if err != nil {
		return d, err
	}
	runErr := o.runCampaign(c.Context(), campaign, c.ErrOrStderr())
	if runErr != nil && !errors.Is(runErr, errNotComparable) {
		return d, o.stopped(campaign, runErr)
	}
	result := source.Judge(campaign)
	return render.Campaign(result), cmp.Or(campaign.Close(), o.judge(result))
}

// open opens the campaign to resume, or creates the one of the flags, if it can run on this host and decide.
func (o *benchOptions) open() (*bench.Campaign, error) {
	if o.Resume != "" {
		campaign, err := bench.Resume(o.Resume)
		if err != nil {
			return nil, err
		}
		s := campaign.Spec // whose command no output may replace
		if err := o.File.Inputs(s.Folder, slices.Concat(s.Command.Normal, s.Command.Server)...); err != nil {
			return nil, errors.Join(err, campaign.Close())
		}
		return campaign, nil
	}
	var differ error
	if text := o.Undeclared(); text != "" {
		differ = failf(exitNotComparable, "the commands of the arms differ in %s: remove the difference", text)
	}
	if err := cmp.Or(usage(o.Spec.Check()), differ, usage(thisHost().Resolve(o.Spec))); err != nil {
		return nil, err
	}
	folder := cmp.Or(o.Campaign.Path, freeName("moebalance-bench-"+time.Now().Format("20060102-150405")))
	campaign, err := bench.Create(folder, o.Spec, time.Now())
	if errors.Is(err, bench.ErrExists) {
		err = fmt.Errorf("%w with '%s'", err, render.ResumeCommand(folder))
	}
	return campaign, err
}

// freeName is that name, or with a number where another run has taken it.
func freeName(name string) string {
	for free, n := name, 2; ; free, n = fmt.Sprintf("%s-%d", name, n), n+1 {
		if _, err := os.Lstat(free); err != nil {
			return free
		}
	}
}

// thisHost is the machine we run on.
func thisHost() bench.Host {
	executable, _ := os.Executable() // without it, a command named moebalance must be on the path
	h := bench.Host{Environ: os.Environ(), Executable: executable, Now: time.Now, Sleep: sleep,
		Counts: source.RecordedBalance}
	if smi, err := exec.LookPath("nvidia-smi"); err == nil {
		h.GPUs = func(ctx context.Context) ([]launch.GPU, error) { return launch.NvidiaSMI(ctx, smi) }
	}
	return h
}

func sleep(ctx context.Context, d time.Duration) error {
	slept, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-slept.Done()
	return ctx.Err()
}

// errNotComparable stops a campaign after its first pair.
var errNotComparable = errors.New("the arms of the first pair cannot be compared")

func (o *benchOptions) runCampaign(ctx context.Context, campaign *bench.Campaign, stderr io.Writer) error {
	shown := render.NewProgress(stderr, campaign)
	defer shown.Clear()
	h := thisHost()
	if o.Spec = campaign.Spec; o.needsHook(o.Command.Normal) && campaign.Left() > 0 {
		var err error
		if h.Environ, err = hookEnviron(campaign.Folder); err != nil {
			return err
		}
	}
	h.Report, h.Grace = shown.Event, launch.DefaultGrace
	h.Grace.Cut, _ = ctx.Value(cutKey{}).(chan struct{})
	h.Accept = func(c *bench.Campaign) error {
		switch r := gain.Judge(bench.Recorded(c)); {
		case r.Verdict.Refused():
			return errNotComparable
		case r.Gain.N == 0:
			return fmt.Errorf("the launches so far give no gain: %s", r.Units()[0].Note)
		}
		return nil
	}
	return campaign.Run(ctx, h)
}

// stopped says why a campaign ended before its end, and how to resume it.
func (o *benchOptions) stopped(campaign *bench.Campaign, cause error) error {
	finished, total, resume := campaign.Finished(), len(campaign.Launches), render.ResumeCommand(campaign.Folder)
	cause = errors.Join(cause, campaign.Close())
	switch lost, ok := errors.AsType[*control.Lost](cause); {
	case finished == 0 && ok && !lost.Timed:
		return withCode(exitNotComparable, cause)
	case errors.Is(cause, context.Canceled):
		return failf(exitInterrupted, "interrupted after %d of %d launches; resume with: %s", finished, total, resume)
	}
	return fmt.Errorf("%w; %d of %d launches are kept: fix the cause and resume with '%s', or run a corrected command",
		cause, finished, total, resume)
}
