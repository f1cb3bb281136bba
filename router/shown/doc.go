// Package shown makes texts of others fit to be shown: without secrets, and without
// characters that steer a terminal or turn a line around. All that is printed or
// written for people goes through Text.
package shown

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text is a text without secrets, and Visible.
func Text(text string) string { return Visible(Masked(text)) }

// Visible writes control characters, and those without a glyph that change the
// direction or joining of others, as escapes such as \u202e, and bytes that are no
// UTF-8 as \xff. Line ends stay.
func Visible(text string) string {
	if !strings.ContainsFunc(text, steers) && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		switch _, size := utf8.DecodeRuneInString(text[i:]); {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case steers(r):
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func steers(r rune) bool {
	return r != '\n' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}
