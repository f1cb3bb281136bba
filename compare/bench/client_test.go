package bench

import (
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/gain"
)

// A shell that asks the server whether it is ready may measure another.
func TestServerInAShell(t *testing.T) {
	words := []string{"sh", "-c", "curl http://localhost:8000/health && bench gpu7:9000"}
	if got := launch.ServersOf(words, "localhost:8000"); len(got) > 0 {
		t.Errorf("%v, want none", got)
	}
}

// A client that measures another server than the one started is seen by its words.
func TestServerOfTheClient(t *testing.T) {
	for name, c := range map[string]struct {
		server, client, ready string
		want                  gain.CheckStatus
	}{
		"same URL": {"serve --port 8000", "bench --base-url http://127.0.0.1:8000",
			"http://localhost:8000/health", gain.Pass},
		"same port": {"serve", "bench serve --host 0.0.0.0 --port 8000", "http://localhost:8000/health",
			gain.Pass},
		"another port": {"serve --port 8000", "bench serve --port 9000", "http://localhost:8000/health",
			gain.Warn},
		"another host": {"serve --port 8000", "bench --url node7:8000", "http://localhost:8000/health",
			gain.Warn},
		"health on its own": {"serve --port 8000 --health-port 8001", "bench -u http://localhost:8000",
			"http://localhost:8001/health", gain.Pass},
		"part of another port": {"serve --port 18000", "bench -u http://localhost:8000",
			"http://localhost:18000/health", gain.Warn},
		"in a shell": {"serve --port 8000", "sh -c 'bench --port=9000'", "http://localhost:8000/health",
			gain.Warn},
		"no server named": {"serve --port 8000", "bench --num-prompts 9", "http://localhost:8000/health",
			gain.Unknown},
		"as a word": {"serve.py m 4 8000", "client.py http://localhost:8000 {tokens}", "http://localhost:8000/health",
			gain.Pass},
		"health beside another": {"serve --port 8000", "client.py http://gpu7:9000/v1 --health http://localhost:8000/health",
			"http://localhost:8000/health", gain.Unknown},
		"target beside metrics": {"serve --port 8000", "guidellm benchmark --target http://gpu7:9000 --metrics http://localhost:8000/metrics",
			"http://localhost:8000/health", gain.Warn},
		"a proxy": {"serve --port 8000", "bench --proxy http://localhost:8000 gpu7:9000", "http://localhost:8000/health",
			gain.Unknown},
		"another URL as a word": {"serve.py m 4 8000", "client.py https://example.com/data.json", "http://localhost:8000/health",
			gain.Unknown},
		"default port": {"serve", "bench --base-url http://localhost", "http://localhost:80/health",
			gain.Pass},
		"the endpoint is no URL": {"serve --port 8000", "bench --endpoint /v1/completions --port 8000",
			"http://localhost:8000/health", gain.Pass},
	} {
		spec := Spec{Command: Command{Server: strings.Fields(c.server), Normal: strings.Fields(c.client),
			Ready: c.ready}}
		got, ok := (&Campaign{Spec: spec}).checkServer()
		if !ok || got.Status != c.want {
			t.Errorf("%s: %+v, want %s", name, got, c.want)
		}
	}
}
