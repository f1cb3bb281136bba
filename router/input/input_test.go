package input

import (
	"errors"
	"io"
	"strings"
	"testing"
)

func TestError(t *testing.T) {
	for _, c := range []struct {
		e    Error
		want string
	}{
		{Error{File: "a.st", Position: "byte 8", Expected: "a header of 64 bytes", Found: "12"},
			"a.st: byte 8: want a header of 64 bytes, have 12"},
		{Error{File: "a", Found: "it is empty", Try: "export it again"}, "a: it is empty; export it again"},
		{Error{File: "a", Expected: "more", Err: io.ErrUnexpectedEOF}, "a: want more, have unexpected EOF"},
		{Error{File: "a", Err: errors.New("unexpected end of JSON input")}, "a: JSON that ends early"},
		{Error{File: "a", Err: errors.New("invalid character '{' after top-level value")},
			"a: several JSON values in a file"},
		{Error{File: "a", Found: "two\n lines"}, "a: two lines"},
	} {
		if got := c.e.Error(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	var err error = &Error{File: "a", Err: io.EOF}
	if !errors.Is(err, io.EOF) {
		t.Error("the cause is lost")
	}
	if long := (&Error{File: "a", Found: strings.Repeat("x", 5000)}).Error(); len(long) > 500 {
		t.Errorf("%d bytes", len(long))
	}
}
