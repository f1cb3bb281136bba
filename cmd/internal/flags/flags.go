// Package flags makes the flags of a verb from the fields of its options, and has the kinds of
// flags that pflag lacks: a share, a choice of words, whole numbers and ranges of them, and
// any text that a function reads. A value is refused as flags are read, before a file is opened.
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

// Share is a flag for a fraction that people write as a percentage: 10% and 0.1
// are the same. A bare number above 1 is refused, because it could mean either.
type Share struct {
	Fraction float64
	Given    bool
}

// Set reads a percentage or a fraction.
func (s *Share) Set(text string) error {
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	switch {
	case err != nil || !(v >= 0) || v > 1e6:
		return errors.New("want a percentage such as 10%, or a fraction such as 0.1")
	case percent:
		v /= 100
	case v > 1:
		return errors.New("want " + number + "% if a percentage is meant, or a fraction from 0 to 1")
	}
	s.Fraction, s.Given = v, true
	return nil
}

// String is the percentage, empty before one was given.
func (s *Share) String() string {
	if s.Fraction == 0 && !s.Given {
		return ""
	}
	return strconv.FormatFloat(100*s.Fraction, 'g', -1, 64) + "%"
}

// Type is the word that help shows for the value.
func (s *Share) Type() string { return "percent" }

// Value is a flag whose text becomes a value, or is refused, as flags are read.
type Value[T any] struct {
	Is    T
	text  string
	parse func(string) (T, error)
	words []string // that the shell completes
}

// Read is such a flag before it is given. Without a preset the value stays zero.
func Read[T any](parse func(string) (T, error), preset string, words ...string) Value[T] {
	v := Value[T]{text: preset, parse: parse, words: words}
	if preset != "" {
		_ = v.Set(preset)
	}
	return v
}

// OneOf is a flag that is one of several words, the first of them unless it is given.
func OneOf[T ~string](words ...T) Value[T] {
	texts := make([]string, len(words))
	for i, word := range words {
		texts[i] = string(word)
	}
	return Read(func(text string) (T, error) {
		if !slices.Contains(texts, text) {
			return "", errors.New("want one of " + strings.Join(texts, ", "))
		}
		return T(text), nil
	}, texts[0], texts...)
}

// Numbers is a flag of whole numbers and ranges of them, such as 1,8,64, 1-16 or 1-64:8.
func Numbers(preset string) Value[[]int] { return Read(input.Numbers, preset) }

// Set reads the text.
func (v *Value[T]) Set(text string) (err error) {
	v.text = text
	v.Is, err = v.parse(text)
	return err
}

// String is the text as given.
func (v *Value[T]) String() string { return v.text }

// Type makes help show the flag as one of text.
func (v *Value[T]) Type() string { return "string" }

// Words are the values that the shell completes.
func (v *Value[T]) Words() []string { return v.words }

// Bind adds to the set of a command a flag for each field of a struct, and of the structs that it
// embeds, that has the tag `flag:"name,letter"`. What the field holds is the default; usage is the line
// of help for a name.
func Bind(c *cobra.Command, set *pflag.FlagSet, options any, usage func(name string) string) {
	bindFields(c, set, reflect.ValueOf(options).Elem(), usage)
}

func bindFields(c *cobra.Command, set *pflag.FlagSet, options reflect.Value, usage func(name string) string) {
	for i := range options.NumField() {
		field, at := options.Type().Field(i), options.Field(i)
		name, letter, _ := strings.Cut(field.Tag.Get("flag"), ",")
		switch {
		case name != "":
			into := at.Addr().Interface()
			bind(set, into, name, letter, usage(name))
			if value, ok := into.(interface{ Words() []string }); ok && len(value.Words()) > 0 {
				Complete(c, name, func(*cobra.Command) []string { return value.Words() })
			}
		case field.Anonymous && at.Kind() == reflect.Struct:
			bindFields(c, set, at, usage)
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
	case *float32:
		f.Float32VarP(into, name, letter, *into, usage)
	case *float64:
		f.Float64VarP(into, name, letter, *into, usage)
	case *time.Duration:
		f.DurationVarP(into, name, letter, *into, usage)
	default:
		f.VarP(into.(pflag.Value), name, letter, usage)
		if named, ok := into.(interface{ Name(flag string) }); ok {
			named.Name("--" + name)
		}
	}
}

// Complete makes the shell complete the values of a flag, which are asked for only then.
func Complete(c *cobra.Command, flag string, values func(*cobra.Command) []string) {
	_ = c.RegisterFlagCompletionFunc(flag, func(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return values(c), cobra.ShellCompDirectiveNoFileComp
	})
}

// Typed are the flags that were given and are wanted, as they would be typed again.
func Typed(c *cobra.Command, wanted func(*pflag.Flag) bool) (words []string) {
	c.Flags().Visit(func(f *pflag.Flag) {
		if !wanted(f) {
			return
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, v := range values {
			words = append(words, "--"+f.Name, v)
		}
	})
	return words
}

// Given are the flags that were given, but for those named: "--steps", "--table".
func Given(c *cobra.Command, but ...string) (names []string) {
	c.Flags().Visit(func(f *pflag.Flag) {
		if !slices.Contains(but, f.Name) {
			names = append(names, "--"+f.Name)
		}
	})
	return names
}
