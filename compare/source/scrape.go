package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"time"

	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/router/input"
)

// Bounds of one scrape of a metrics endpoint.
const (
	scrapeTimeout = 30 * time.Second
	maxScrape     = 1 << 26 // bytes
)

// loginOfURL is shown nowhere.
var loginOfURL = regexp.MustCompile(`//[^/\s]+@`)

// scrape reads the counters of a metrics endpoint. Errors are of type *input.Error.
func scrape(ctx context.Context, address string) (*counts.Record, error) {
	content, err := fetch(ctx, address)
	address = loginOfURL.ReplaceAllString(address, "//(redacted)@")
	if err != nil {
		return nil, &input.Error{File: address, Err: err}
	}
	return counts.ParseMetrics(address, content)
}

func fetch(ctx context.Context, address string) (content []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, scrapeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	var response *http.Response
	if err == nil {
		request.Header.Set("Accept", "text/plain")
		response, err = http.DefaultClient.Do(request)
	}
	if failed := (*url.Error)(nil); errors.As(err, &failed) {
		return nil, failed.Err // without the URL, which the caller names
	} else if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("want 200 OK, have %s", response.Status)
	}
	content, err = io.ReadAll(io.LimitReader(response.Body, maxScrape+1))
	if err == nil && len(content) > maxScrape {
		err = fmt.Errorf("want at most %d bytes, have more", maxScrape)
	}
	return content, err
}
