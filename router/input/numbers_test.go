package input

import (
	"slices"
	"strings"
	"testing"
)

func TestNumbers(t *testing.T) {
	for text, want := range map[string][]int{
		"8": {8}, "1,8,64": {1, 8, 64}, "1-4": {1, 2, 3, 4}, "0, 2-2": {0, 2}, "1-16:4": {1, 5, 9, 13},
		"8-64:8,1,8": {1, 8, 16, 24, 32, 40, 48, 56, 64},
	} {
		if got, err := Numbers(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"": "want whole numbers", "4-": `have "4-"`, "-4": "1-16", "4:2": "1-64:8", "8-1": "8-1", "1-8:0": "1-8:0",
		"10%": "10%", "8k": "8k", "1-2-3": "1-2-3", "1,,2": "1,,2",
		"1-99999999": "at most 10000", "1-6000,1-6000": "at most 10000", "9999999999999999999": "want whole numbers",
	} {
		if got, err := Numbers(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %d numbers, %v, want %q", text, len(got), err, want)
		}
	}
}
