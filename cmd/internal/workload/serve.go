package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
)

// Serve answers /health, and /run?steps=N&prompts=N by the result of a run, until ctx ends.
func (e *Engine) Serve(ctx context.Context, address string) error {
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
