// Package flags makes the flags of a verb from the fields of its options. A value is refused as flags are read,
// before a file is opened, and so is a flag that is given twice.
package flags

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/moebalance/moebalance/router/input"
)

// parseShare reads a share: 10% and 0.1 are both 0.1. A bare number above 1 is refused, because it could
// mean either.
func parseShare(text string) (float64, error) {
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v >= 0) || v > 10 || v > 1 && !percent { // the busiest of eight ranks is 700 % above the mean
		return 0, errors.New("want a percentage such as 10%, at most 1000%, or a fraction such as 0.1")
	}
	return v, nil
}

// Bind adds to a command a flag for each field of a struct, and of the structs in it, that has the tag
// `flag:"name,letter"`; usage is the line of help for a name. Before the flag is given, the field has the value of
// the tag `preset:"text"`. The text is read by the parser, a func(string) (T, error), of the field's type, or as a
// share with the tag `in:"%"`. A pointer to T is nil until the flag is given; a list of T that has no parser itself
// takes a flag any number of times.
func Bind(c *cobra.Command, options any, usage func(name string) string, parsers ...any) {
	by := map[reflect.Type]reflect.Value{}
	for _, p := range append(parsers, plain...) {
		by[reflect.TypeOf(p).Out(0)] = reflect.ValueOf(p)
	}
	bind(c.Flags(), reflect.ValueOf(options).Elem(), usage, by)
}

// plain are the parsers of types that are not of one verb.
var plain = []any{input.Numbers,
	func(text string) (string, error) { return text, nil },
	saying("true or false, or nothing", strconv.ParseBool),
	saying("a whole number, such as 8", strconv.Atoi),
	saying("a whole number, such as 8", func(text string) (uint64, error) { return strconv.ParseUint(text, 10, 64) }),
	saying("a number, such as 1.5", func(text string) (float64, error) { return strconv.ParseFloat(text, 64) }),
	saying("a time with its unit, such as 30s, 10m or 2h", func(text string) (time.Duration, error) {
		return time.ParseDuration("+" + strings.TrimPrefix(text, "+")) // -1s is none
	}),
}

// saying is a parser whose error says what is wanted.
func saying[T any](wanted string, parse func(string) (T, error)) func(string) (T, error) {
	return func(text string) (T, error) {
		v, err := parse(text)
		if err != nil {
			err = errors.New("want " + wanted)
		}
		return v, err
	}
}

func bind(into *pflag.FlagSet, options reflect.Value, usage func(string) string, by map[reflect.Type]reflect.Value) {
	for i := range options.NumField() {
		field := options.Type().Field(i)
		name, letter, _ := strings.Cut(field.Tag.Get("flag"), ",")
		if name == "" {
			if field.Type.Kind() == reflect.Struct {
				bind(into, options.Field(i), usage, by)
			}
			continue
		}
		v := &value{into: options.Field(i), preset: field.Tag.Get("preset")}
		var ok bool
		if v.by, ok = by[field.Type]; field.Tag.Get("in") == "%" {
			v.by = reflect.ValueOf(parseShare)
		} else if !ok {
			v.by = by[field.Type.Elem()]
		}
		if v.preset != "" {
			if err := v.read(v.preset); err != nil {
				panic(fmt.Sprintf("preset of --%s: %v", name, err))
			}
		}
		text := usage(name)
		if called, rest, named := strings.Cut(text, "`: "); named && strings.HasPrefix(called, "`") {
			v.called, text = called[1:], rest
		}
		flag := into.VarPF(v, name, letter, text)
		if field.Type.Kind() == reflect.Bool {
			flag.NoOptDefVal = "true"
		}
	}
}

// value is a flag. It is given once at most, but for lists: pflag would take the last of several texts.
type value struct {
	into, by reflect.Value // the field, and its parser
	preset   string
	called   string   // what help calls the value: FILE of "`FILE`: report"
	texts    []string // that were given
}

func (v *value) Set(text string) error {
	many := v.into.Kind() == reflect.Slice && v.into.Type() != v.by.Type().Out(0)
	if len(v.texts) > 0 && !many {
		return fmt.Errorf("want one value, have %q and %q", v.texts[0], text)
	}
	v.texts = append(v.texts, text)
	return v.read(text)
}

func (v *value) read(text string) error {
	out := v.by.Call([]reflect.Value{reflect.ValueOf(text)})
	if err, _ := out[1].Interface().(error); err != nil {
		return err
	}
	switch {
	case v.into.Type() == out[0].Type():
		v.into.Set(out[0])
	case v.into.Kind() == reflect.Slice:
		v.into.Set(reflect.Append(v.into, out[0]))
	default:
		v.into.Set(reflect.New(out[0].Type()))
		v.into.Elem().Set(out[0])
	}
	return nil
}

// String is what help shows as the default.
func (v *value) String() string { return v.preset }

// Type is what help shows a value by: its name, or a type of Go's own, nothing for bool.
func (v *value) Type() string {
	if v.called != "" {
		return v.called
	} else if kind := v.into.Kind().String(); kind == v.into.Type().String() {
		return kind
	}
	return "string"
}

// Field is a pointer to the field that a flag was bound to, and the texts that were given for it; nil for a flag of
// another kind.
func Field(f *pflag.Flag) (field any, texts []string) {
	if v, ok := f.Value.(*value); ok {
		return v.into.Addr().Interface(), v.texts
	}
	return nil, nil
}

// Given are the flags that were given, but for the ones named, "--ep", "--table", and typed the words that give them
// again, with their values.
func Given(c *cobra.Command, but ...string) (names, typed []string) {
	c.Flags().Visit(func(f *pflag.Flag) {
		if slices.Contains(but, f.Name) {
			return
		}
		names = append(names, "--"+f.Name)
		_, texts := Field(f)
		for _, text := range texts {
			typed = append(typed, "--"+f.Name, text)
		}
	})
	return names, typed
}
