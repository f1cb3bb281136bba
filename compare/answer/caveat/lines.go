package caveat

import (
	_ "embed" // of the answers
	"sync"

	"go.yaml.in/yaml/v4"
)

// answersText has the lines of answers and the steps that follow from them.
//
//go:embed answers.yaml
var answersText []byte

// Line is a row of the catalog for one thing that an answer can say first. Numbers, Reasons and Next are the
// names of what follows, in order, each as far as its values are known; of steps with | between them the first.
type Line struct {
	Verdict                string // of the answer; of results that have one the row is for this verdict, or for any
	Text                   string
	Numbers, Reasons, Next string
}

// readAnswers has the first sentences of answers, by kind of result, and what to do next, by name: in words, and by a
// command as it is typed but for words in capitals; one that begins with a verb is of this program.
var readAnswers = sync.OnceValue(func() (a struct {
	Lines map[string][]Line
	Steps map[string][2]string
}) {
	if err := yaml.Load(answersText, &a, yaml.WithKnownFields()); err != nil {
		panic(err) // the text is ours
	}
	return a
})

// Lines are what an answer of a kind of results can say first: the first row whose values are all known is told.
func Lines(kind string) []Line { return readAnswers().Lines[kind] }
