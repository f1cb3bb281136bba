// Package flags has the kinds of flags that several verbs take beside those of pflag: a
// share, a choice of words, whole numbers and ranges of them, and any text that a function
// reads. A value is refused as flags are read, before a file is opened.
package flags

import (
	"errors"
	"slices"
	"strconv"
	"strings"

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

// value is a flag whose text becomes a value, or is refused, as flags are read.
type value[T any] struct {
	into  *T
	text  string
	parse func(string) (T, error)
}

// Parsed adds such a flag. Without a preset the value stays zero.
func Parsed[T any](c *cobra.Command, into *T, parse func(string) (T, error), flag, preset, usage string,
	completions ...string) {
	p := &value[T]{into, preset, parse}
	if preset != "" {
		_ = p.Set(preset)
	}
	c.Flags().Var(p, flag, usage)
	Complete(c, flag, completions...)
}

// Choice adds a flag that is one of several words.
func Choice[T ~string](c *cobra.Command, into *T, flag string, preset T, usage string, among ...T) {
	words := make([]string, len(among))
	for i, word := range among {
		words[i] = string(word)
	}
	Parsed(c, into, func(text string) (T, error) {
		if !slices.Contains(among, T(text)) {
			return "", errors.New("want one of " + strings.Join(words, ", "))
		}
		return T(text), nil
	}, flag, string(preset), usage, words...)
}

// Numbers adds a flag of whole numbers and ranges of them. Given again, it adds to them.
func Numbers(c *cobra.Command, into *[]int, flag, preset, usage string) {
	if !strings.Contains(usage, "`") {
		usage = "`LIST`: " + usage
	}
	Parsed(c, into, func(text string) ([]int, error) {
		list, err := input.Numbers(text)
		if c.Flags().Changed(flag) {
			list = append(*into, list...)
		}
		return list, err
	}, flag, preset, usage+"; such as 1,8,64, 1-16 or 1-64:8")
}

// Complete makes the shell complete the values of a flag.
func Complete(c *cobra.Command, flag string, values ...string) {
	if len(values) > 0 {
		_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
}

// Set reads the text.
func (p *value[T]) Set(text string) (err error) {
	p.text = text
	*p.into, err = p.parse(text)
	return err
}

// String is the text as given.
func (p *value[T]) String() string { return p.text }

// Type makes help show the flag as one of text.
func (p *value[T]) Type() string { return "string" }

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
