package launch

import (
	"fmt"
	"regexp"
	"strings"
)

// Words splits a command line as a POSIX shell does, with quotes and
// backslashes but without expanding anything: no variables, globs or pipes.
func Words(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	open, quote, escaped := false, rune(0), false
	for _, r := range line {
		switch {
		case escaped:
			if quote == '"' && !strings.ContainsRune("\"\\$`", r) {
				word.WriteRune('\\') // inside double quotes it escapes only these
			}
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped, open = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, open = r, true
		case r == ' ' || r == '\t' || r == '\n':
			if open {
				words = append(words, word.String())
				word.Reset()
				open = false
			}
		default:
			word.WriteRune(r)
			open = true
		}
	}
	if quote != 0 || escaped {
		return nil, fmt.Errorf("unfinished quote or backslash in %q", line)
	}
	if open {
		words = append(words, word.String())
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
