package router

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/testdata/require"
)

// 7 experts on 3 ranks: the remainder of one goes to the first rank.
func TestContiguous(t *testing.T) {
	want := [][]int32{{0, 1, 2}, {3, 4}, {5, 6}}
	if l, err := Contiguous(7, 3); err != nil || !reflect.DeepEqual(l.held, want) {
		t.Errorf("%+v, %v", l, err)
	}
	l := require.Value(Contiguous(8, 4))
	if per, ok := l.PerRank(); per != 2 || !ok {
		t.Errorf("per rank %d %v, want 2", per, ok)
	}
	if got := l.RankLoad([]int64{1, 2, 3, 4, 5, 6, 7, 8}); !reflect.DeepEqual(got, []int64{3, 7, 11, 15}) {
		t.Errorf("rank load %v", got)
	}
}

// The 5 slots of an expert with copies on both ranks are 3 and 2; a rank with two of its three copies gets two thirds.
func TestReplicas(t *testing.T) {
	for _, c := range []struct {
		held        [][]int32
		places      []int // of expert 0
		slots, want []int64
	}{
		{[][]int32{{0, 1}, {2, 0}}, []int{0, 1}, []int64{5, 1, 2}, []int64{4, 4}},
		{[][]int32{{0, 0}, {0, 1}}, []int{0, 0, 1}, []int64{90, 10}, []int64{60, 40}},
	} {
		l, err := Placed(len(c.slots), c.held)
		if err != nil || !l.Replicated() || !reflect.DeepEqual(l.Places(0), c.places) ||
			!reflect.DeepEqual(l.RankLoad(c.slots), c.want) {
			t.Errorf("%v: %+v, %v", c.held, l, err)
		}
	}
}

// More ranks than experts, no experts, an expert without a place, and one that does not exist.
func TestBadLayouts(t *testing.T) {
	_, many := Contiguous(4, 5)
	_, none := Contiguous(0, 0)
	_, homeless := Placed(3, [][]int32{{0, 1}})
	_, beyond := Placed(2, [][]int32{{0, 2}, {1}})
	for i, err := range []error{many, none, homeless, beyond} {
		if !errors.Is(err, ErrShape) {
			t.Errorf("%d: %v", i, err)
		}
	}
}

func TestShapeValidate(t *testing.T) {
	for _, c := range []struct {
		shape Shape
		fault string
	}{
		{Shape{Experts: 256, TopK: 8, Groups: 8, TopKGroups: 4}, ""},
		{Shape{Experts: 128, TopK: 4}, ""},
		{Shape{Experts: 8, TopK: 2, Groups: 1}, ""},
		{Shape{}, "at least 1 expert"},
		{Shape{Experts: 4, TopK: 5}, "between 1 and 4"},
		{Shape{Experts: 10, TopK: 2, Groups: 4, TopKGroups: 2}, "do not divide"},
		{Shape{Experts: 16, TopK: 2, Groups: 4, TopKGroups: 5}, "between 1 and 4 groups"},
		{Shape{Experts: 16, TopK: 5, Groups: 4, TopKGroups: 1}, "cannot hold top-5"},
		{Shape{Experts: 16, TopK: 2, Groups: -1}, "0 or more groups"},
	} {
		err := c.shape.Validate()
		if c.fault == "" && err != nil || c.fault != "" &&
			(!errors.Is(err, ErrShape) || !strings.Contains(err.Error(), c.fault)) {
			t.Errorf("%+v: got %v, want %q", c.shape, err, c.fault)
		}
	}
}

func TestLoadMerges(t *testing.T) {
	a, b := NewLoad(3), NewLoad(3)
	a.Add([]int32{0, 2, 2})
	b.Add([]int32{1})
	if a.Merge(b); !reflect.DeepEqual(a.PerExpert, []int64{1, 1, 2}) || b.Total() != 1 {
		t.Errorf("merged %v with %v", a, b)
	}
	if _, err := ParseMode("dp"); err == nil || !strings.Contains(err.Error(), "dep") {
		t.Errorf("mode dp: %v", err)
	}
}
