package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// batchFlags say how many tokens the ranks hold: the same number each, or
// unequally many, and then also how many ranks there are.
type batchFlags struct {
	tokens  []int
	unequal unequal
	given   func(flag string) bool
}

func (b *batchFlags) bind(f *pflag.FlagSet, tokens []int) {
	f.IntSliceVar(&b.tokens, "tokens", tokens, "batch sizes in tokens per rank, one or several numbers")
	f.Var(&b.unequal, "unequal", "`TOKENS` of each rank, such as 5,0,3,7, in place of --ep and --tokens; again for further batches")
	b.given = f.Changed
}

// check holds every number of tokens against the most a rank may have.
func (b *batchFlags) check(most int) error {
	flag, batches := "--tokens", [][]int{b.tokens}
	if len(b.unequal) > 0 {
		flag, batches = "--unequal", b.unequal
		if b.given("ep") || b.given("tokens") {
			return usagef("--unequal is in place of --ep and --tokens")
		}
	}
	for _, each := range batches {
		if len(each) == 0 || slices.Min(each) < 0 || slices.Max(each) > most {
			return usagef("%s: want 0 to %d tokens per rank, have %v", flag, most, each)
		}
	}
	return nil
}

// unequal is a flag for batches: the tokens of each rank, one batch per use.
type unequal [][]int

// Set reads one batch. The same one again adds nothing.
func (u *unequal) Set(text string) error {
	var each []int
	for number := range strings.SplitSeq(text, ",") {
		t, err := strconv.Atoi(strings.TrimSpace(number))
		if err != nil {
			return errors.New("want a whole number for each rank with commas between them, such as 5,0,3,7")
		}
		each = append(each, t)
	}
	if !slices.ContainsFunc(*u, func(known []int) bool { return slices.Equal(known, each) }) {
		*u = append(*u, each)
	}
	return nil
}

// String is the batches, empty before one was given.
func (u *unequal) String() string {
	if len(*u) == 0 {
		return ""
	}
	return fmt.Sprint([][]int(*u))
}

// Type is the word that help shows for the value.
func (u *unequal) Type() string { return "tokens" }
