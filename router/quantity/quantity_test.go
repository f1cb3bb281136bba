package quantity

import (
	"math"
	"testing"
)

func TestWriting(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Percent(0.1234), "12.3 %"}, {Percent(-0.1234), "−12.3 %"}, {Percent(-0.0001), "0.0 %"},
		{Percent(math.NaN()), "–"}, {Change(0.05), "+5.0 %"}, {Change(-0.05), "−5.0 %"}, {Change(-0.0001), "+0.0 %"},
		{Change(math.Inf(1)), "–"}, {Ratio(1.5), "1.500"}, {Ratio(1000.4), "1000"}, {Digits4(12345.6), "12346"},
		{Duration(1e6), "1.00 ms"}, {Duration(-12.0), "−12.0 ns"}, {Duration(0.0), "0 ns"},
		{Duration(math.NaN()), "–"}, {Bytes(8509.0), "8.31 KiB"}, {Digits3(0.1234), "0.123"},
		{Digits3(123456.0), "123456"}, {Count(1, "layer"), "1 layer"}, {Count(0, "entry"), "0 entries"},
		{Count(3, "launch"), "3 launches"}, {Count(2, "day"), "2 days"}, {Confidence(0.96875), "96.9 %"},
		{Confidence(0.95), "95 %"}, {Confidence(0.9998), "99.98 %"}, {Confidence(0.999999), "99.9999 %"},
		{Confidence(1.0), "100 %"}, {Confidence(math.NaN()), "–"}, {Numbered("launch", []int{3}), "launch 3"},
		{Numbered("launch", []int{3, 7}), "launches 3, 7"}, {Ranges[int](nil), "none"}, {Ranges([]int{3}), "3"},
		{Ranges([]int{0, 1, 7}), "0, 1, 7"}, {Ranges([]int{0, 1, 2, 5, 6, 8, 9, 10, 11}), "0 to 2, 5, 6, 8 to 11"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
