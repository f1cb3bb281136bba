package output

import (
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"

	"github.com/moebalance/moebalance/router/shown"
)

// Screen is what a person reads on. The zero value is a pipe or a file: lines of any
// length, without color.
type Screen struct {
	Width int // columns; 0 is any number
	Color bool
}

// ScreenOf is the screen that w writes to, none unless it is a terminal. COLUMNS takes
// the place of the terminal's own width; NO_COLOR and TERM=dumb take the color away.
func ScreenOf(w io.Writer, env func(string) string) Screen {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return Screen{}
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if columns, bad := strconv.Atoi(env("COLUMNS")); bad == nil && columns > 0 {
		width = columns
	} else if err != nil || width <= 0 {
		width = 80
	}
	return Screen{width, env("NO_COLOR") == "" && env("TERM") != "dumb"}
}

// bold and warn set texts off where there is color; nothing is said by it alone.
func (s Screen) bold(text string) string { return s.escape("1", text) }
func (s Screen) warn(text string) string { return s.escape("33", text) }

// escape sets each line of a text off, so that lines can be put beside others.
func (s Screen) escape(code, text string) string {
	if !s.Color || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + strings.ReplaceAll(text, "\n", "\x1b[0m\n\x1b["+code+"m") + "\x1b[0m"
}

// prose breaks the lines of a text between words where the screen ends.
func (s Screen) prose(words, indent string) string {
	words = shown.Text(words)
	if s.Width == 0 {
		return words
	}
	words = beforeUnit.ReplaceAllString(words, "$1\u00a0$2")
	return strings.ReplaceAll(Broken(words, s.Width, indent), "\u00a0", " ")
}

// beforeUnit is the space between a number and its unit, where no line ends.
var beforeUnit = regexp.MustCompile(`(\d) (%|[nµm]?s\b|[KMG]?i?B\b)`)

// Broken is a text in lines of at most width columns, but for longer words. Lines that
// go on are indented.
func Broken(words string, width int, indent string) string {
	var out []string
	for line := range strings.SplitSeq(words, "\n") {
		part := ""
		for i, word := range strings.Split(line, " ") {
			if i > 0 && text.StringWidth(part)+1+text.StringWidth(word) > width {
				out, part = append(out, part), indent+word
				continue
			}
			if i > 0 {
				part += " "
			}
			part += word
		}
		out = append(out, part)
	}
	return strings.Join(out, "\n")
}
