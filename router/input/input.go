// Package input opens what a user names, and says of an input that cannot be used which file it is, where in it, what
// was expected and what was found. Numbers reads what flags have.
package input

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Error is about one input. Every field but File and Found may be empty.
type Error struct {
	File     string // path or display name
	Position string // "byte 512", "line 3", "table NVTX_EVENTS", "layer 4"
	Expected string // what a usable input has there
	Found    string // what this one has
	Try      string // what the user can do about it
	Err      error  // the cause, for errors.Is; printed only where Found is empty
}

// Error is one line: FILE: POSITION: want EXPECTED, have FOUND; TRY.
func (e *Error) Error() string { return e.File + ": " + e.Fault() }

// Fault is the error without the file's name, for lists that name it already.
func (e *Error) Fault() string {
	text := ""
	if e.Position != "" {
		text = e.Position + ": "
	}
	found := e.Found
	if found == "" && e.Err != nil {
		found = words(e.Err)
	}
	switch {
	case e.Expected == "":
		text += found
	case found == "":
		text += "want " + e.Expected
	default:
		text += "want " + e.Expected + ", have " + found
	}
	if e.Try != "" {
		text += "; " + e.Try
	}
	text = strings.Join(strings.Fields(text), " ") // what is quoted from a file may be anything
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// words are an error without the words of Go.
func words(err error) string {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return "a JSON " + wrong.Value // object, string, number 1.5
	} else if broken, ok := errors.AsType[*json.SyntaxError](err); ok {
		if strings.Contains(broken.Error(), "after top-level value") {
			return fmt.Sprintf("several JSON values, the second from byte %d on", broken.Offset)
		}
		return fmt.Sprintf("JSON that breaks off, or is wrong, at byte %d", broken.Offset)
	}
	return err.Error()
}

// most is the most characters of an error.
const most = 400

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Err }

// Beginning tells what a file of no known format begins with: its first word where it is text.
func Beginning(head []byte) string {
	switch {
	case len(head) == 0:
		return "an empty file"
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return "a gzip file"
	case bytes.ContainsFunc(head[:min(len(head), 100-utf8.UTFMax)], // the last character may be cut
		func(r rune) bool { return r == utf8.RuneError || r < ' ' && !unicode.IsSpace(r) }):
		return "binary data"
	}
	return fmt.Sprintf("text that begins with %.12q", head)
}
