package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/moebalance/moebalance/compare/bench/control"
)

// Follow serves runs at an address, and changes the router to rows of balanced logits and back as the folder
// of MOEBALANCE_CONTROL says. The counts of each order go to a folder of their own below counts.
func (e *Engine) Follow(ctx context.Context, address string, rows [][]float32, counts string) error {
	var failed error
	write := func(sequence int) {
		failed = errors.Join(failed, e.WriteCounts(counts, fmt.Sprintf("sequence%d", sequence)))
	}
	folder := os.Getenv("MOEBALANCE_CONTROL")
	follower := control.Follower{
		Side: control.Folder(folder), Ranks: len(rows), Own: "off", Changed: write,
		Set: func(router string) error {
			switch router {
			case "off":
				e.Balance(nil)
			case "perfect":
				e.Balance(rows)
			default:
				return fmt.Errorf("this workload has the routers off and perfect, not %q", router)
			}
			return nil
		},
	}
	if folder != "" {
		steps := int64(0)
		e.between = func() error {
			steps++
			return errors.Join(follower.Poll(time.Now(), steps-1), failed)
		}
	}
	err := e.serve(ctx, address)
	sequence, _, _ := follower.Sequence()
	write(sequence)
	return errors.Join(err, failed)
}

// serve answers /health, and /run?steps=N&prompts=N by the result of a run, until ctx ends.
func (e *Engine) serve(ctx context.Context, address string) error {
	var busy sync.Mutex // one run at a time
	mux := http.NewServeMux()
	mux.HandleFunc("/health", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/run", func(w http.ResponseWriter, r *http.Request) {
		busy.Lock()
		defer busy.Unlock()
		steps, _ := strconv.Atoi(r.FormValue("steps")) // 0 is refused
		prompts, err := strconv.ParseUint(r.FormValue("prompts"), 10, 64)
		var res Result
		if err == nil {
			res, err = e.Run(r.Context(), 0, steps, prompts)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_ = json.NewEncoder(w).Encode(res) // a client that is gone needs no answer
	})
	server := &http.Server{Addr: address, Handler: mux}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Ask copies the result of a run of the engine served at an address.
func Ask(ctx context.Context, address string, steps int, prompts uint64, out io.Writer) error {
	url := fmt.Sprintf("http://%s/run?steps=%d&prompts=%d", address, steps, prompts)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
		return fmt.Errorf("the engine at %s: %s", address, text)
	}
	_, err = io.Copy(out, resp.Body)
	return err
}
