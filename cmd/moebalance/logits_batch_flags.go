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
// unequally many, which gives the number of ranks too.
type batchFlags struct {
	tokens  []int
	unequal unequal
	given   func(flag string) bool
}

func (b *batchFlags) bind(f *pflag.FlagSet, tokens []int) {
	bindTokens(f, &b.tokens, tokens)
	f.Var(&b.unequal, "unequal", "`TOKENS` of each rank, such as 5,0,3,7, in place of --ep and --tokens; again for further batches")
	b.given = f.Changed
}

func bindTokens(f *pflag.FlagSet, tokens *[]int, preset []int) {
	f.IntSliceVar(tokens, "tokens", preset, "batch sizes in tokens per rank, one or several numbers")
}

// check compares every number of tokens with the most a rank may have.
func (b *batchFlags) check(most int) error {
	if len(b.unequal) == 0 {
		return checkTokens("--tokens", b.tokens, most)
	}
	if b.given("ep") || b.given("tokens") {
		return usagef("--unequal is in place of --ep and --tokens")
	}
	for _, each := range b.unequal {
		if err := checkTokens("--unequal", each, most); err != nil {
			return err
		}
	}
	return nil
}

func checkTokens(flag string, tokens []int, most int) error {
	if len(tokens) == 0 || slices.Min(tokens) < 0 || slices.Max(tokens) > most {
		return usagef("%s: want 0 to %d tokens per rank, have %v", flag, most, tokens)
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
