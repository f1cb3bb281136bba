package bench

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/testdata/require"
)

// The test binary plays the benchmark command, too: with childVariable set it
// does what that names and exits.
const childVariable = "BENCH_TEST_CHILD"

func TestMain(m *testing.M) {
	if mode := os.Getenv(childVariable); mode != "" {
		os.Exit(playChild(mode, os.Args[1:]))
	}
	os.Exit(m.Run())
}

// noisy is a rate that differs from launch to launch, and in both arms of a pair by the same, as far as the
// test tells one launch from another.
func noisy(rate float64) float64 {
	_, number, _ := strings.Cut(os.Getenv("MOEBALANCE_LAUNCH"), "/")
	launch, _ := strconv.Atoi(number)
	return rate * (1 + 0.001*float64(launch/2%5) + 1e-9*float64(launch)) // none comes again
}

// report prints a result like the built-in workload's: a rate of the learned router, and how many times faster the
// balanced one is.
func report(w io.Writer, normal, faster float64) {
	perfect := os.Getenv("ENABLE_PERFECT_ROUTER") == "1"
	rate, over := normal, 1.5
	if perfect {
		rate, over = normal*faster, 1
	}
	fmt.Fprintf(w, `{"perfect_router":%t,"ranks":2,"tokens_per_rank":8,"tokens_per_second":%.15g,`+
		`"expert_max_over_mean":[%g],"rank_max_over_mean":[%g]}`+"\n", perfect, noisy(rate), over, over)
}

// pointReport is the report at a load: it gains load/64 − 1/32, an arm with BENCH_TEST_GAIN that.
func pointReport(w io.Writer, load float64) {
	gained, _ := strconv.ParseFloat(os.Getenv("BENCH_TEST_GAIN"), 64)
	faster := 1.2
	if load > 0 {
		faster = 1 + load/64 - 1./32
	}
	report(w, 1000*(1+gained), faster)
}

func playChild(mode string, args []string) int {
	switch mode {
	case "report":
		report(os.Stdout, 1000, 1.1)
	case "log": // appends its arguments to the file named first, stalls where the test says so, reports
		f, err := os.OpenFile(args[0], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return 9
		}
		fmt.Fprintln(f, strings.Join(args[1:], " "), os.Getpid())
		f.Close()
		stallAt(args[0])
		report(os.Stdout, 1000, 1.1)
	case "fail":
		fmt.Fprintln(os.Stderr, "CUDA out of memory")
		return 3
	case "server":
		return serve(args[0])
	case "engine":
		return playEngine(args[0], args[1])
	case "client": // prints, or writes to the file named second; one that is told its arm would decide the result
		told := fmt.Sprint(os.Environ(), os.Args)
		if strings.Contains(strings.ToLower(told), "perfect") || strings.Contains(told, controlVariable) {
			return 9
		}
		resp, err := http.Get(args[0])
		if err != nil || resp.StatusCode != 200 {
			return 9
		}
		defer resp.Body.Close()
		to := os.Stdout
		if len(args) == 2 {
			if to, err = os.Create(args[1]); err != nil {
				return 9
			}
			defer to.Close()
		}
		io.Copy(to, resp.Body)
	case "point": // a report that gains c/64 − 1/32 at the load given, and by BENCH_TEST_GAIN
		load, _ := strconv.ParseFloat(args[0], 64)
		pointReport(os.Stdout, load)
	case "point-client": // logs, fetches, and fails or waits where the test says so
		f, err := os.OpenFile(args[0], os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o644)
		if err != nil {
			return 9
		}
		fmt.Fprintln(f, args[2], args[3])
		f.Close()
		stallAt(args[0])
		return playChild("client", args[1:2])
	case "bench": // a bench process of its own, to be killed
		c, err := Resume(args[0])
		if err == nil {
			err = c.Run(context.Background(), testHost(append(args, "log")[1]))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return 0
}

// stallAt waits to be ended once the log has as many lines as the test says.
func stallAt(log string) {
	text, _ := os.ReadFile(log)
	if n := os.Getenv("BENCH_TEST_STALL"); n != "" && fmt.Sprint(strings.Count(string(text), "\n")) == n {
		time.Sleep(10 * time.Minute)
	}
}

// serve answers once it has thought for a moment, until it is asked to end.
func serve(addr string) int {
	time.Sleep(100 * time.Millisecond)
	mux := http.NewServeMux()
	mux.HandleFunc("/health", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/bench", func(w http.ResponseWriter, r *http.Request) {
		if load, err := strconv.ParseFloat(r.URL.Query().Get("c"), 64); err == nil {
			pointReport(w, load)
			return
		}
		report(w, 1000, 1.1)
	})
	if err := http.ListenAndServe(addr, mux); err != nil {
		return 9
	}
	return 0
}

// testHost runs children of the mode.
func testHost(mode string) Host {
	env := []string{childVariable + "=" + mode, "PATH=" + os.Getenv("PATH"), "GOMAXPROCS=1",
		"BENCH_TEST_STALL=" + os.Getenv("BENCH_TEST_STALL"),
		// else each child of a test binary with the race detector waits a second before it ends
		"GORACE=atexit_sleep_ms=0"}
	return Host{
		Environ: env, Now: time.Now,
		Sleep: func(context.Context, time.Duration) error { return nil },
		Grace: launch.Grace{Interrupt: 50 * time.Millisecond, Terminate: 50 * time.Millisecond},
	}
}

// testSpec is a campaign of the test binary with these arguments.
func testSpec(pairs int, args ...string) Spec {
	self := require.Value(os.Executable())
	trtllm := require.Value(ParseTreatment("trtllm"))
	return Spec{
		Design: Design{Pairs: pairs, Seed: 1}, Treatment: trtllm,
		Command: Command{Normal: append([]string{self}, args...)}, Threshold: 0.1,
	}
}

// freeAddress is one that nothing listens at. It lies below the ports that the system
// itself hands out, so that no connection of somebody else takes it in the meantime.
func freeAddress(t *testing.T) string {
	t.Helper()
	for port := 20_000 + os.Getpid()%10_000; port < 32_000; port++ {
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}

// reopen closes a campaign and resumes it, as a later process would.
func reopen(t *testing.T, c *Campaign) *Campaign {
	t.Helper()
	require.NoError(t, c.Close())
	c = require.Value(Resume(c.Folder))
	t.Cleanup(func() { c.Close() })
	return c
}

// create lays down a campaign in a fresh folder, whose name is hard on URLs.
func create(t *testing.T, spec Spec) *Campaign {
	t.Helper()
	c := require.Value(Create(filepath.Join(t.TempDir(), "campaign #1? 100%20"), spec, time.Unix(1, 0)))
	t.Cleanup(func() { c.Close() })
	return c
}
