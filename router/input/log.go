package input

import "strings"

// engines are those whose logs are known by what they hold, and what makes such a log say how long steps take.
var engines = []struct{ holds, name, option string }{
	{"[TRT-LLM]", "TensorRT-LLM", "print_iter_log: true in its --config adds a line for each iteration"},
	{"server_args=ServerArgs(", "SGLang", "--decode-log-interval 1 adds a line for each decode step"},
	{"Decode batch", "SGLang", "--decode-log-interval 1 adds a line for each decode step"},
}

// EngineLog is the engine whose log a text is, and the option that makes it log steps; empty where none is known.
func EngineLog(text string) (engine, option string) {
	for _, e := range engines {
		if strings.Contains(text, e.holds) {
			return e.name, e.option
		}
	}
	return "", ""
}
