package router

// Warning is something the reader of a result must know. Code is stable and for
// programs, Text for people; Subject names the file, arm or rank
// concerned. It stands here because traces, counts and comparisons all have warnings,
// and pass on those of each other.
type Warning struct {
	Code    string `json:"code"`
	Subject string `json:"subject,omitempty"`
	Text    string `json:"text"`
}
