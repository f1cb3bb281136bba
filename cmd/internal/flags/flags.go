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

// Share is a fraction that people write as a percentage: 10% and 0.1 are both 0.1.
type Share float64

// ParseShare reads a share. A bare number above 1 is refused, because it could mean either.
func ParseShare(text string) (Share, error) {
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		v /= 100
	}
	switch {
	case err != nil || !(v >= 0) || percent && v > 10: // the busiest of eight ranks is 700 % above the mean at most
		return 0, errors.New("want a percentage such as 10%, at most 1000%, or a fraction such as 0.1")
	case !percent && v > 1:
		return 0, errors.New("want " + number + "% if a percentage is meant, or a fraction from 0 to 1")
	}
	return Share(v), nil
}

// Bind adds to a command a flag for each field of a struct, and of the structs that it embeds, that has the tag
// `flag:"name,letter"`. Before the flag is given it has the value of the tag `preset:"text"`; usage is the line of
// help for a name. The text is read by the parser, a func(string) (T, error), of the field's type; a pointer to
// such a type is nil until the flag is given, and a list of texts takes a flag any number of times.
func Bind(c *cobra.Command, options any, usage func(name string) string, parsers ...any) {
	b := binder{c.Flags(), usage, map[reflect.Type]reflect.Value{}}
	for _, p := range append(parsers, plain...) {
		b.parsers[reflect.TypeOf(p).Out(0)] = reflect.ValueOf(p)
	}
	b.fields(reflect.ValueOf(options).Elem())
}

// plain are the parsers of types that are not of one verb.
var plain = []any{ParseShare, input.Numbers,
	func(text string) (string, error) { return text, nil },
	saying("true or false, or nothing", strconv.ParseBool),
	saying("a whole number, such as 8", strconv.Atoi),
	saying("a whole number, such as 8", func(text string) (uint64, error) { return strconv.ParseUint(text, 10, 64) }),
	saying("a number, such as 1.5", func(text string) (float64, error) { return strconv.ParseFloat(text, 64) }),
	saying("a time with its unit, such as 30s, 10m or 2h", time.ParseDuration),
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

type binder struct {
	flags   *pflag.FlagSet
	usage   func(name string) string
	parsers map[reflect.Type]reflect.Value
}

func (b binder) fields(options reflect.Value) {
	for i := range options.NumField() {
		field, at := options.Type().Field(i), options.Field(i)
		name, letter, _ := strings.Cut(field.Tag.Get("flag"), ",")
		switch {
		case name == "" && field.Anonymous:
			b.fields(at)
		case name == "":
		case field.Type == reflect.TypeFor[[]string]():
			b.flags.StringArrayVarP(at.Addr().Interface().(*[]string), name, letter, nil, b.usage(name))
		default:
			b.bind(at, name, letter, field.Tag.Get("preset"))
		}
	}
}

func (b binder) bind(at reflect.Value, name, letter, preset string) {
	by, ok := b.parsers[at.Type()]
	if !ok {
		by = b.parsers[at.Type().Elem()]
	}
	v := &value{into: at, by: by}
	if preset != "" {
		if err := v.read(preset); err != nil {
			panic(fmt.Sprintf("preset of --%s: %v", name, err))
		}
	}
	flag := b.flags.VarPF(v, name, letter, b.usage(name))
	if at.Kind() == reflect.Bool {
		flag.NoOptDefVal = "true"
	}
}

// value is a flag that is given once at most: pflag would take the last of several texts.
type value struct {
	into, by reflect.Value // the field, and its parser
	text     string
	given    bool
}

func (v *value) Set(text string) error {
	if v.given {
		return fmt.Errorf("want one value, have %q and %q", v.text, text)
	}
	v.given = true
	return v.read(text)
}

func (v *value) read(text string) error {
	out := v.by.Call([]reflect.Value{reflect.ValueOf(text)})
	if err, _ := out[1].Interface().(error); err != nil {
		return err
	}
	into := v.into
	if into.Type() != out[0].Type() {
		into.Set(reflect.New(out[0].Type()))
		into = into.Elem()
	}
	into.Set(out[0])
	v.text = text
	return nil
}

func (v *value) String() string { return v.text }

// Type is what help shows a value by: a type of Go's own, nothing for bool.
func (v *value) Type() string {
	if kind := v.into.Kind().String(); kind == v.into.Type().String() {
		return kind
	}
	return "string"
}

// Field is a pointer to the field that a flag was bound to, nil for a list of texts.
func Field(f *pflag.Flag) any {
	if v, ok := f.Value.(*value); ok {
		return v.into.Addr().Interface()
	}
	return nil
}

// Given are the flags that were given, but for the ones named: "--steps", "--table".
func Given(c *cobra.Command, but ...string) (names []string) {
	c.Flags().Visit(func(f *pflag.Flag) {
		if !slices.Contains(but, f.Name) {
			names = append(names, "--"+f.Name)
		}
	})
	return names
}

// Typed are the flags that were given, but for the ones named, with their values as they would be typed
// again.
func Typed(c *cobra.Command, but ...string) (words []string) {
	for _, name := range Given(c, but...) {
		value := c.Flag(strings.TrimPrefix(name, "--")).Value
		values := []string{value.String()}
		if list, ok := value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, v := range values {
			words = append(words, name, v)
		}
	}
	return words
}
