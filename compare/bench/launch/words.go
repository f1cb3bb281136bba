package launch

import (
	"fmt"
	"regexp"
	"strings"
)

// piece is a part of a command line: a space, or some of a word: in quotes, behind a backslash, or as it stands.
var piece = regexp.MustCompile(`^(?s:([ \t\n]+)|'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)|([^ \t\n'"\\]+))`)

// inDouble is what a backslash escapes inside double quotes.
var inDouble = regexp.MustCompile("\\\\([\"\\\\$`])")

// Words splits a command line as a POSIX shell does, with quotes and
// backslashes but without expanding anything: no variables, globs or pipes.
//
//	run 'a b' --x="c\"d" → run, a b, --x=c"d
func Words(line string) (words []string, err error) {
	open := false
	for rest := line; rest != ""; {
		m := piece.FindStringSubmatch(rest)
		if m == nil {
			return nil, fmt.Errorf("unfinished quote or backslash in %q", line)
		}
		if rest = rest[len(m[0]):]; m[1] != "" {
			open = false
			continue
		}
		if !open {
			words, open = append(words, ""), true
		}
		words[len(words)-1] += m[2] + inDouble.ReplaceAllString(m[3], "$1") + m[4] + m[5]
	}
	return words, nil
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// Quote writes words as a POSIX shell reads them back.
func Quote(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = w
		if !plainWord.MatchString(w) {
			quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}
