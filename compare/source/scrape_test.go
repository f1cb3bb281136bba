package source

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moebalance/moebalance/compare/counts"
)

// An endpoint is scraped twice; what it added in between is the load.
func TestScrape(t *testing.T) {
	scrapes := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/metrics":
			scrapes++
			http.ServeFile(w, r, fmt.Sprintf("../../testdata/counts/scrape-%d.prom", scrapes))
		case "/other":
			fmt.Fprintln(w, "vllm:num_requests_running 3.0")
		case "/slow":
			<-r.Context().Done()
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	ask := func(path string) (*counts.Record, error) {
		ctx := t.Context()
		if path == "/slow" {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, 50*time.Millisecond)
			defer cancel()
		}
		return scrape(ctx, server.URL+path)
	}
	first, err := ask("/metrics")
	if err != nil {
		t.Fatal(err)
	}
	second, err := ask("/metrics")
	if err != nil {
		t.Fatal(err)
	}
	d, err := second.Since(first)
	if err != nil {
		t.Fatal(err)
	}
	for s, err := range d.Steps() {
		if err != nil || s.Layer != 3 || !slices.Equal(s.Load.PerExpert, []int64{1, 5, 8, 2}) ||
			!slices.Equal(s.Received, []int64{6, 10}) {
			t.Errorf("%+v, %v", s, err)
		}
	}
	if d.Slots() != 16 {
		t.Errorf("%d slots", d.Slots())
	}
	for path, want := range map[string]string{"/missing": "want 200 OK, have 404 Not Found",
		"/other": "want counters of expert load", "/slow": "deadline exceeded"} {
		if r, err := ask(path); err == nil || err.Error() != server.URL+path+": "+strings.TrimPrefix(err.Error(),
			server.URL+path+": ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v", path, r, err)
		}
	}
}
