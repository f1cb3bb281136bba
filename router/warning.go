package router

import "encoding/json"

// Warning is something the reader of a result must know: a stable code and the values that
// its words need. Subject names the file, arm or rank concerned. Package caveat words it;
// Text is of results that were worded before. It stands here because traces, counts and
// comparisons all have warnings, and pass on each other's.
type Warning struct {
	Code    string `json:"code"`
	Subject string `json:"subject,omitempty"`
	Args    Args   `json:"args,omitempty"`
	Text    string `json:"text,omitempty"`
}

// Key is what warnings of one case of a code have in common.
func (w Warning) Key() string {
	if why, ok := w.Args["why"].(string); ok {
		return w.Code + "." + why
	}
	return w.Code
}

// Args are named values: numbers, words and lists of either, as encoding/json decodes
// them, so that a warning read back is the one written. An undefined number is nil.
type Args map[string]any

// Warn makes a warning of a code, and of names and values in turn. The name "why" stands for
// one of several cases of a code.
func Warn(code, subject string, args ...any) Warning {
	w := Warning{Code: code, Subject: subject}
	for i := 0; i+1 < len(args); i += 2 {
		if w.Args == nil {
			w.Args = Args{}
		}
		var decoded any
		if text, err := json.Marshal(args[i+1]); err == nil { // a float that is not finite stays nil
			_ = json.Unmarshal(text, &decoded)
		}
		w.Args[args[i].(string)] = decoded
	}
	return w
}
