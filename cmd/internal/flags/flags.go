// Package flags makes the flags of a verb from the fields of its options, and has the kinds of flags that
// pflag lacks: any text that a function reads. A value is refused as flags are read, before a
// file is opened.
package flags

import (
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/moebalance/moebalance/router/input"
)

// Value is a flag whose text becomes a value, or is refused, as flags are read.
type Value[T any] struct {
	Is    T
	Given bool
	text  string
	parse func(string) (T, error)
}

// Read is such a flag before it is given. Without a preset the value stays zero.
func Read[T any](parse func(string) (T, error), preset string) Value[T] {
	v := Value[T]{text: preset, parse: parse}
	if preset != "" {
		v.Is, _ = parse(preset)
	}
	return v
}

// Numbers is a flag of whole numbers and ranges of them, such as 1,8,64, 1-16 or 1-64:8.
func Numbers(preset string) Value[[]int] { return Read(input.Numbers, preset) }

// Share is a flag of a fraction that people write as a percentage, with a preset such as "10%".
func Share(preset string) Value[float64] { return Read(parseShare, preset) }

// parseShare reads 10% and 0.1 alike. A bare number above 1 is refused, because it could mean either.
func parseShare(text string) (float64, error) {
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
	return v, nil
}

// Set reads the text.
func (v *Value[T]) Set(text string) (err error) {
	v.text, v.Given = text, true
	v.Is, err = v.parse(text)
	return err
}

// String is the text as given.
func (v *Value[T]) String() string { return v.text }

// Type makes help show the flag as one of text.
func (v *Value[T]) Type() string { return "string" }

// Bind adds to a command a flag for each field of a struct, and of the structs that it embeds, that has the
// tag `flag:"name,letter"`. What the field holds is the default; usage is the line of help for a name.
func Bind(c *cobra.Command, options any, usage func(name string) string) {
	bindFields(c.Flags(), reflect.ValueOf(options).Elem(), usage)
}

func bindFields(f *pflag.FlagSet, options reflect.Value, usage func(name string) string) {
	for i := range options.NumField() {
		field, at := options.Type().Field(i), options.Field(i)
		if name, letter, _ := strings.Cut(field.Tag.Get("flag"), ","); name != "" {
			bind(f, at.Addr().Interface(), name, letter, usage(name))
		} else if field.Anonymous {
			bindFields(f, at, usage)
		}
	}
}

func bind(f *pflag.FlagSet, into any, name, letter, usage string) {
	switch into := into.(type) {
	case *string:
		f.StringVarP(into, name, letter, *into, usage)
	case *[]string:
		f.StringArrayVarP(into, name, letter, *into, usage)
	case *bool:
		f.BoolVarP(into, name, letter, *into, usage)
	case *int:
		f.IntVarP(into, name, letter, *into, usage)
	case *uint64:
		f.Uint64VarP(into, name, letter, *into, usage)
	case *float64:
		f.Float64VarP(into, name, letter, *into, usage)
	case *time.Duration:
		f.DurationVarP(into, name, letter, *into, usage)
	default:
		f.VarP(into.(pflag.Value), name, letter, usage)
	}
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
