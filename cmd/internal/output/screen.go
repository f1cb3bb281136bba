package output

import (
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"

	"github.com/moebalance/moebalance/router/quantity"
	"github.com/moebalance/moebalance/router/shown"
	"github.com/moebalance/moebalance/router/table"
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

// gap is between two columns.
const gap = "  "

// textTable is a table as people read it.
type textTable struct {
	columns []shownColumn
	alarms  []bool // by row
}

type shownColumn struct{ table.Shown }

func textTableOf(t table.Table) textTable {
	s := textTable{alarms: make([]bool, len(t.Rows))}
	for _, c := range t.Shown() {
		s.columns = append(s.columns, shownColumn{c})
		for row, cell := range c.Cells {
			s.alarms[row] = s.alarms[row] || slices.Contains(c.Alarm, cell)
		}
	}
	return s
}

// hideColumns makes the table at most so wide, and returns the columns that this hid. First
// headings and long labels are broken between words. Then columns go: those without a
// value, those of one value, which is returned with them, the minor ones, and the
// rightmost. The first one, unless all its cells are the same, stays.
func (s *textTable) hideColumns(width int, minor []string) (hidden []string) {
	if s.width() <= width {
		return nil
	}
	for i := range s.columns {
		s.columns[i].narrow(max(16, width/3))
	}
	var left []shownColumn
	for s.width() > width && len(s.columns) > 1 {
		last, least := 0, -1
		for i, c := range s.columns {
			if rank := c.dispensable(minor); rank >= least && (i > 0 || rank > len(minor)) {
				last, least = i, rank
			}
		}
		left = append(left, s.columns[last])
		s.columns = slices.Delete(s.columns, last, last+1)
	}
	slices.SortFunc(left, func(a, b shownColumn) int { return a.At - b.At })
	for _, c := range left {
		hidden = append(hidden, c.gone())
	}
	return hidden
}

func (s *textTable) width() (sum int) {
	for _, c := range s.columns {
		sum += c.width()
	}
	return sum
}

func (c shownColumn) width() int { return max(text.LongestLineLen(c.Head), c.widest()) + len(gap) }

// widest is the width of the cells.
func (c shownColumn) widest() (most int) {
	for _, cell := range c.Cells {
		most = max(most, text.LongestLineLen(cell))
	}
	return most
}

// narrow breaks labels beyond a width, and the heading to the width of the cells.
func (c *shownColumn) narrow(most int) {
	for i, cell := range c.Cells {
		// names end a line after _ or /, too
		if c.Cells[i] = Broken(cell, most, ""); text.LongestLineLen(c.Cells[i]) > most {
			c.Cells[i] = text.WrapText(joints.Replace(Broken(parted.Replace(cell), most, "")), most)
		}
	}
	c.Head = strings.ReplaceAll(Broken(strings.ReplaceAll(c.Head, "/", "/ "), c.widest(), ""), "/ ", "/")
}

// parted makes the parts of a name words; joints undoes it, also at the end of a line.
var parted, joints = strings.NewReplacer("_", "_\x00 ", "/", "/\x00 "), strings.NewReplacer("\x00 ", "", "\x00", "")

// only is the value that all rows have, if they do.
func (c shownColumn) only() (value string, ok bool) {
	if len(slices.Compact(slices.Clone(c.Cells))) != 1 {
		return "", false
	}
	return c.Cells[0], true
}

// dispensable is the rank by which columns are hidden, the highest first.
func (c shownColumn) dispensable(minor []string) int {
	value, same := c.only()
	switch at := slices.Index(minor, c.ID()); {
	case same && value == quantity.Unknown:
		return len(minor) + 2
	case same && len(c.Cells) > 1:
		return len(minor) + 1
	case at >= 0:
		return len(minor) - at
	}
	return 0
}

// gone names the column where it is not shown.
func (c shownColumn) gone() string {
	name := strings.ReplaceAll(strings.ReplaceAll(c.Head, "/\n", "/"), "\n", " ")
	if value, ok := c.only(); ok && value != quantity.Unknown && value != "" {
		return name + " = " + strings.ReplaceAll(value, "\n", " ")
	}
	return name
}
