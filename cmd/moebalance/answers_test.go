package main

import (
	"encoding/json"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/moebalance/moebalance/compare/answer"
	"github.com/moebalance/moebalance/compare/source"
)

// answersFile holds the answer to every capture at hand, to be read like a person's
// summaries: commands, each with what it prints and its exit code.
const answersFile = "testdata/answers.txt"

// Every answer is the one of testdata/answers.txt, and short; JSON and the page say the same. Captures
// that are not part of the repository are asked where they are.
func TestAnswers(t *testing.T) {
	if testing.Short() {
		t.Skip("every capture; the verbs have tests of their own")
	}
	t.Chdir("../..")
	old, err := os.ReadFile(answersFile)
	if err != nil {
		t.Fatal(err)
	}
	var fresh strings.Builder
	for block := range strings.SplitSeq(string(old), "\n$ ") {
		command, _, _ := strings.Cut(strings.TrimPrefix(block, "$ "), "\n")
		args := strings.Fields(command)
		if block == "" || len(args) == 0 {
			continue
		}
		if fresh.Len() > 0 {
			fresh.WriteString("\n")
		}
		if !atHand(args) {
			fresh.WriteString("$ " + strings.TrimPrefix(strings.TrimSuffix(block, "\n"), "$ ") + "\n")
			continue
		}
		if args[1] == "report" { // of which the page shows the answer
			fmt.Fprintf(&fresh, "$ %s\n%s", command, toldOf(t, args[2]))
			continue
		}
		out, errs, code := invoke(t.Context(), args[1:]...)
		fmt.Fprintf(&fresh, "$ %s\n%s", command, out)
		if code != exitDone {
			fmt.Fprintf(&fresh, "exit %d\n", code)
		}
		if out == "" {
			t.Errorf("%s: no answer: %s", command, errs)
			continue
		}
		checkAnswer(t, args[1:], out)
	}
	switch {
	case fresh.String() == string(old):
	case *update:
		if err := os.WriteFile(answersFile, []byte(fresh.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s: other answers; go test ./cmd/moebalance -run Answers -update rewrites it\n%s", answersFile,
			firstDifference(string(old), fresh.String()))
	}
}

// toldOf is the answer of a campaign in a file, which its page shows.
func toldOf(t *testing.T, path string) string {
	t.Helper()
	item, err := source.ReadResult(path)
	if err != nil {
		t.Fatal(err)
	}
	a := answer.OfCampaign(item.Campaign.Asked())
	lines := []string{a.Line, a.Status()}
	for _, n := range a.Numbers {
		lines = append(lines, n.String())
	}
	for _, reason := range a.Reasons {
		lines = append(lines, "- "+reason)
	}
	for _, step := range a.Next {
		lines = append(lines, "Next: "+step.Command)
	}
	page, errs, code := invoke(t.Context(), "report", path)
	if code != exitDone || !strings.Contains(plainText(page), ">"+a.Line+"<") || len(strings.Fields(a.Line)) > answer.MaxWords ||
		utf8.RuneCountInString(a.Line) > answer.MaxRunes {
		t.Errorf("%s: the page does not say %q: exit %d, %s", path, a.Line, code, errs)
	}
	return strings.Join(lines, "\n") + "\n"
}

// atHand reports whether all files that a command names are there.
func atHand(args []string) bool {
	for _, arg := range args {
		if !strings.HasPrefix(arg, "../shared/") {
			continue
		}
		if found, _ := filepath.Glob(arg); len(found) == 0 {
			return false
		}
	}
	return true
}

// placeholder is a word of a command that is to be filled in.
var placeholder = regexp.MustCompile(`\b[A-Z_]{3,}\b`)

// word is one that is no number or sign: they are read faster.
var word = regexp.MustCompile(`\S*\pL\S*`)

// checkAnswer holds what a command prints against its JSON and against the page of that.
func checkAnswer(t *testing.T, args []string, text string) {
	t.Helper()
	name := strings.Join(args, " ")
	out, _, _ := invoke(t.Context(), append(args, "--format", "json")...)
	var result struct {
		Answer answer.Answer `json:"answer"`
	}
	if err := json.Unmarshal([]byte(out), &result); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	a := result.Answer
	if words := len(strings.Fields(a.Line)); words > answer.MaxWords || utf8.RuneCountInString(a.Line) > answer.MaxRunes ||
		!strings.HasSuffix(a.Line, ".") {
		t.Errorf("%s: a line of %d words: %q", name, words, a.Line)
	}
	if len(a.Numbers) > 5 || len(a.Reasons) > 3 || len(a.Next) > 2 || strings.Count(text, "\n") > 24 {
		t.Errorf("%s: a long answer: %d numbers, %d reasons, %d steps, %d lines", name, len(a.Numbers), len(a.Reasons),
			len(a.Next), strings.Count(text, "\n"))
	}
	if want := a.Line + "\n" + a.Status() + "\n"; !strings.HasPrefix(text, want) {
		t.Errorf("%s: the text does not begin as JSON's answer does: %q", name, want)
	}
	for _, said := range a.Reasons {
		if n := len(word.FindAllString(said, -1)); n > answer.MaxWords {
			t.Errorf("%s: a reason of %d words: %q", name, n, said)
		}
		if !strings.Contains(text, "- "+said+"\n") {
			t.Errorf("%s: the text lacks the reason %q", name, said)
		}
	}
	for _, step := range a.Next {
		if placeholder.MatchString(step.Command) {
			continue
		}
		words := strings.Fields(strings.ReplaceAll(step.Command, "'", ""))
		out, errs, code := invoke(t.Context(), words[1:]...)
		if rows := strings.Count(out, "\n"); code != exitDone || rows < 3 {
			t.Errorf("%s: the next step %q: exit %d, %d lines, %s", name, step.Command, code, rows, errs)
		}
	}
	file := filepath.Join(t.TempDir(), "result.json")
	if err := os.WriteFile(file, []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
	page, errs, code := invoke(t.Context(), "report", file)
	if code != exitDone && code != exitNotComparable {
		t.Errorf("%s: report: exit %d, %s", name, code, errs)
		return
	}
	shown := strings.ReplaceAll(html.UnescapeString(page), "\u00a0", " ")
	for _, n := range a.Numbers {
		if !strings.Contains(shown, "<dt>"+n.Label+`</dt><dd class="v">`+n.Shown()+"</dd>") {
			t.Errorf("%s: the page lacks %s", name, n)
		}
	}
	if !strings.Contains(shown, ">"+a.Line+"<") {
		t.Errorf("%s: the page does not say %q", name, a.Line)
	}
}
