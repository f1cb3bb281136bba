package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/moebalance/moebalance/compare/bench/control"
)

// Follow serves runs, and changes the router to one of the rows of balanced logits and back as the
// folder of MOEBALANCE_CONTROL says. write is called for the counts of each order, apart.
func (e *Engine) Follow(ctx context.Context, address string, rows [][]float32, write func(sequence int) error) error {
	steps, folder := int64(0), os.Getenv("MOEBALANCE_CONTROL")
	var unwritten error
	follower := control.Follower{
		Side: control.Folder(folder), Ranks: len(rows), Own: "off",
		Changed: func(sequence int) { unwritten = errors.Join(unwritten, write(sequence)) },
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
		e.Step = func() error {
			steps++
			return errors.Join(follower.Poll(time.Now(), steps-1), unwritten)
		}
	}
	err := e.serve(ctx, address)
	sequence, _, _ := follower.Sequence()
	return errors.Join(err, write(sequence))
}

// serve answers /health, and /run?steps=N&prompts=N by the result of a run, until ctx ends.
func (e *Engine) serve(ctx context.Context, address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	var busy sync.Mutex // one run at a time
	mux := http.NewServeMux()
	mux.HandleFunc("/health", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/run", func(w http.ResponseWriter, r *http.Request) {
		busy.Lock()
		defer busy.Unlock()
		steps, err := strconv.Atoi(r.FormValue("steps"))
		prompts, err2 := strconv.ParseUint(r.FormValue("prompts"), 10, 64)
		var res Result
		if err = errors.Join(err, err2); err == nil {
			res, err = e.Run(r.Context(), 0, steps, prompts)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_ = json.NewEncoder(w).Encode(res) // a client that is gone needs no answer
	})
	server := &http.Server{Handler: mux}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
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
