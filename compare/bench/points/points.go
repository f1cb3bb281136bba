// Package points reads the loads at which a campaign measures its arms, as a user writes them, and draws
// their order.
package points

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Points are the loads at which both arms are measured, such as numbers of concurrent
// requests. {NAME} in a command stands for the value of one: in the engine's command each
// point has launches of its own, with a server's client each launch of the server
// has a run of the client per point.
type Points struct {
	Name   string   `json:"name"`
	Values []string `json:"values"` // as typed, ascending
}

// reserved are the names of the other placeholders.
var reserved = []string{"arm", "launch", "pair", "out", "seed"}

var pointName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// Parse reads NAME=VALUE,VALUE….
func Parse(s string) (Points, error) {
	name, list, ok := strings.Cut(s, "=")
	switch {
	case !ok || !pointName.MatchString(name):
		return Points{}, errors.New("want NAME=VALUE,VALUE…, such as concurrency=1,8,64,256")
	case slices.Contains(reserved, name):
		return Points{}, fmt.Errorf("{%s} stands for something else: choose another name", name)
	}
	p := Points{Name: name}
	for v := range strings.SplitSeq(list, ",") {
		v = strings.TrimSpace(v)
		if n, err := strconv.ParseFloat(v, 64); err != nil || !(n > 0 && n <= 1e15) {
			return Points{}, fmt.Errorf("want positive numbers, have %q", v)
		}
		p.Values = append(p.Values, v)
	}
	slices.SortStableFunc(p.Values, func(a, b string) int { return cmp.Compare(Number(a), Number(b)) })
	once := slices.CompactFunc(slices.Clone(p.Values), func(a, b string) bool { return Number(a) == Number(b) })
	if len(once) < max(2, len(p.Values)) {
		return Points{}, errors.New("want two values or more, none of them twice")
	}
	return p, nil
}

// Number is a checked value of a point.
func Number(value string) float64 {
	n, _ := strconv.ParseFloat(value, 64)
	return n
}

// Drawn is the order of a pair's points, the same in both of its arms.
func Drawn(seed uint64, pair int, values []string) []string {
	draw := rand.New(rand.NewPCG(seed, 0x706f696e7473<<16+uint64(pair+1))) // a stream per pair, apart from the arms'
	order := slices.Clone(values)
	draw.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	return order
}
