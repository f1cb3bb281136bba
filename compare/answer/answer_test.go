package answer

import (
	"os"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/logits"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/testdata/require"
)

// commands are the commands of an answer's next steps.
func commands(a Answer) string {
	var list []string
	for _, s := range a.Next {
		list = append(list, s.Command)
	}
	return strings.Join(list, "; ")
}

// check wants a verdict, a line that contains one, reasons that contain others, and commands.
func check(t *testing.T, name string, a Answer, verdict Verdict, line, reasons, next string) {
	t.Helper()
	if a.Verdict != verdict || !strings.Contains(a.Line, line) {
		t.Errorf("%s: %s: %q, want %s: %q", name, a.Verdict, a.Line, verdict, line)
	}
	said := strings.Join(append(a.Kinds, a.Reasons...), "\n")
	for want := range strings.SplitSeq(reasons, ";") {
		if !strings.Contains(said, want) {
			t.Errorf("%s: %q lacks %q", name, said, want)
		}
	}
	if have := commands(a); !strings.Contains(have, next) {
		t.Errorf("%s: next %q, want %q", name, have, next)
	}
	if len(a.Numbers) > 5 || len(a.Reasons) > 3 || len(a.Next) > 3 {
		t.Errorf("%s: %d numbers, %d reasons, %d steps", name, len(a.Numbers), len(a.Reasons), len(a.Next))
	}
}

// Every answer of the corpus, which holds all real captures, says in a whole sentence what is, and
// leads on: to a command that is not the one just run.
func TestAnswersLeadOn(t *testing.T) {
	corpus := require.Value(os.ReadFile("../../testdata/corpus.txt"))
	for _, entry := range strings.Split(strings.TrimPrefix(string(corpus), "$ "), "\n$ ") {
		command, rest, _ := strings.Cut(entry, "\n")
		if !strings.Contains(rest, "answer verdict=") {
			continue
		}
		_, line, _ := strings.Cut(rest, ` line="`)
		line, _, _ = strings.Cut(line, "\"\n")
		if !strings.HasSuffix(line, ".") || strings.ContainsAny(line, "{}[]") || strings.Contains(line, "– ") {
			t.Errorf("%s: %q is no sentence", command, line)
		}
		next, steps := rest, 0
		for {
			var found bool
			if _, next, found = strings.Cut(next, ` command="`); !found {
				break
			}
			run, _, _ := strings.Cut(next, "\"\n")
			own, _, _ := strings.Cut(run, " -- ")
			if run = strings.ReplaceAll(run, "'", ""); run == command || run == "" || strings.ContainsAny(own, "<[") &&
				!strings.Contains(command, "[") || strings.Contains(run, "–") {
				t.Errorf("%s: next is %q", command, run)
			}
			steps++
		}
		if steps == 0 && !strings.HasPrefix(rest, "exit 1\n") && !strings.Contains(command, "logits plans") { // a table
			t.Errorf("%s: no next step", command)
		}
	}
}

// A number is shown in its unit, with its interval.
func TestNumbers(t *testing.T) {
	for want, n := range map[string]Number{
		"gain 12.7 % (12.5 to 13.0 %)": {"gain", 0.127, Fraction, 0.125, 0.13, Measured},
		"wait 2.65 ms":                 {"wait", 2.65e6, NS, router.Undefined(), router.Undefined(), Measured},
		"load 1.85":                    {"load", 1.847, MaxMean, router.Undefined(), router.Undefined(), Recorded},
	} {
		if have := n.String(); have != want {
			t.Errorf("have %q, want %q", have, want)
		}
	}
}

// Drawn entries of a cache are uneven on purpose, beside balanced ones and alone.
func TestAnswersOfCache(t *testing.T) {
	balanced := logits.BatchBalance{Plan: "diagonal/2", AtFloor: true, Entries: 4}
	drawn := logits.BatchBalance{Plan: "target-1.5/1", Drawn: true, Entries: 4}
	v := logits.Verification{Entries: make([]logits.Entry, 8), Balance: []logits.BatchBalance{balanced, drawn}}
	check(t, "both", OfCache(&v, "c"), "complete",
		"8 files are exact; 1 of 1 batch size is as balanced as can be; 4 drawn by target-1.5/1 are uneven on purpose.", "",
		"")
	v.Balance[0].AtFloor = false
	check(t, "above the floor", OfCache(&v, "c"), "complete",
		"0 of 1 batch size is as balanced as can be; 4 drawn by target-1.5/1 are uneven on purpose.", "", "")
	v.Balance[0] = drawn
	check(t, "drawn", OfCache(&v, "c"), "complete", "8 files are exact; 8 drawn by target-1.5/1 are uneven on purpose.", "",
		"")
	// To write it again mends what is damaged, and not a plan of which ranks disagree.
	for fault, next := range map[string]string{"damaged: byte 8": "--cache c", logits.Disagree + ": …": "--cache c-diagonal"} {
		v.Entries[3].Status = "failed: " + fault
		if have := commands(OfCache(&v, "c")); !strings.HasSuffix(have, next) {
			t.Errorf("%s: next %s", fault, have)
		}
	}
}

func TestSentencesKeepNames(t *testing.T) {
	for text, want := range map[string]string{"l2/diagonal-rank3 fails": "l2/diagonal-rank3 fails.", "": ".",
		"output_throughput is": "output_throughput is.", "target-1.2 reaches it.": "target-1.2 reaches it.",
		"decode-like steps": "Decode-like steps."} {
		if have := Sentence(text); have != want {
			t.Errorf("%q → %q, want %q", text, have, want)
		}
	}
}
