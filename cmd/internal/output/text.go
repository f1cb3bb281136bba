package output

import (
	"fmt"
	"strings"

	"github.com/moebalance/moebalance/router/shown"
	"github.com/moebalance/moebalance/router/table"
)

// writer writes a document as text or Markdown.
type writer struct {
	View
	strings.Builder
}

// line writes one line of prose.
func (w *writer) line(text string) { w.WriteString(w.prose(text) + "\n") }

// answer writes the line, the verdict with its basis, and the numbers.
func (w *writer) answer(a *Answer) {
	const mostNumbers = 3
	numbers := a.Numbers[:min(mostNumbers, len(a.Numbers))]
	status := a.Verdict
	if a.Basis != "" {
		status += " · " + a.Basis
	}
	status = w.prose(status)
	if rest, whole := strings.CutPrefix(status, a.Verdict); whole {
		status = w.Screen.escape([]string{"33", "32", "31"}[a.Tone], a.Verdict) + rest
	}
	if w.Format == Markdown {
		fmt.Fprintf(w, "**%s**\n\n%s\n\n", w.prose(a.Line), status)
		if len(numbers) > 0 {
			fmt.Fprintf(w, "%s\n\n", w.prose(strings.Join(numbers, " · ")))
		}
		return
	}
	w.WriteString(w.Screen.bold(w.prose(a.Line)) + "\n" + status + "\n")
	if len(numbers) > 0 {
		w.line(strings.Join(numbers, "   "))
	}
}

// follow writes the reasons and what to do next.
func (w *writer) follow(a *Answer) {
	if w.Format == Markdown && len(a.Reasons)+len(a.Next) > 0 {
		w.WriteString("\n")
	}
	for _, r := range a.Reasons {
		w.line("- " + r)
	}
	for i, step := range a.Next {
		head := "Next: "
		if i > 0 {
			head = "      "
		}
		if w.Format == Markdown {
			fmt.Fprintf(w, "\nNext: `%s`\n", shown.Text(step))
			continue
		}
		w.WriteString(head + shown.Text(step) + "\n") // one line, as it is typed
	}
}

// table writes a table with its title, and what it leaves out.
func (w *writer) table(t table.Table) {
	if t.Title != "" {
		title := w.prose(t.Title)
		if w.Format == Markdown {
			title = "### " + title + "\n"
		}
		w.WriteString(title + "\n")
	}
	drawn, cut := pretty(t, w.View)
	w.WriteString(drawn + "\n")
	if t.Left > 0 {
		order := ""
		if len(t.Leading) > 0 {
			order = "largest first; "
		}
		if w.Format == Markdown {
			w.WriteString("\n") // or it is a row
		}
		w.line(fmt.Sprintf("… and %d more (%s--table %s shows all)", t.Left, order, t.Name))
	}
	if cut {
		w.line("… cut where the terminal ends; a pipe, such as | less -S, gets all columns")
	}
}

// notes writes them one below the other.
func (w *writer) notes(notes []string) {
	if len(notes) > 0 {
		w.WriteString("\n")
	}
	for i, n := range notes {
		if w.Format == Markdown {
			fmt.Fprintf(w, "%d. %s\n", i+1, w.prose(n))
		} else {
			w.line(fmt.Sprintf("[%d] %s", i+1, n))
		}
	}
}
