package workload

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Serve answers /health, and /run?steps=N&prompts=N by the result of a run, until ctx ends.
func (e *Engine) Serve(ctx context.Context, address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	mux, busy := http.NewServeMux(), make(chan struct{}, 1)
	mux.HandleFunc("/health", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/run", func(w http.ResponseWriter, r *http.Request) {
		busy <- struct{}{} // one run at a time
		defer func() { <-busy }()
		steps, err := strconv.Atoi(r.FormValue("steps"))
		prompts, err2 := strconv.ParseUint(cmp.Or(r.FormValue("prompts"), "0"), 10, 64)
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
	go func() {
		<-ctx.Done()
		closing, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		_ = server.Shutdown(closing)
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Ask copies the result of a run of the engine served at an address.
func Ask(ctx context.Context, address string, steps int, prompts uint64, out io.Writer) error {
	query := url.Values{"steps": {strconv.Itoa(steps)}, "prompts": {strconv.FormatUint(prompts, 10)}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/run?"+query.Encode(), nil)
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
