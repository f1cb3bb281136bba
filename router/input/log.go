package input

import "strings"

// engines are those whose logs are known by what they hold, and what of these logs is read, with the option for it.
var engines = []struct{ holds, what string }{
	{"[TRT-LLM]", "TensorRT-LLM: 'moebalance compare' reads lines of iterations (print_iter_log: true in its --config)"},
	{"server_args=ServerArgs(", ofSGLang}, {"Decode batch", ofSGLang}, {"Prefill batch", ofSGLang},
	{"EngineCore", ofVLLM}, {"Avg generation throughput", ofVLLM},
}

const (
	ofSGLang = "SGLang: 'moebalance compare' reads lines of decode steps (--decode-log-interval 1)"
	ofVLLM   = "vLLM: 'moebalance counts' reads its balancedness (--eplb-config '{\"log_balancedness\": true}'), and " +
		"compare its speed (--metric 'decode:tok/s:higher:median=generation throughput: ([\\d.]+)')"
)

// EngineLog says of which engine a text is a log, and what is read of such logs; empty where no engine is known.
func EngineLog(text string) string {
	for _, e := range engines {
		if strings.Contains(text[:min(len(text), 1<<16)], e.holds) {
			return "a log of " + e.what
		}
	}
	return ""
}
