package main

import (
	"errors"
	"strconv"
	"strings"
)

// share is a flag for a fraction that people write as a percentage: 10% and 0.1
// are the same. A bare number above 1 is refused, because it could mean either.
type share struct {
	fraction float64
	given    bool
}

// Set reads a percentage or a fraction.
func (s *share) Set(text string) error {
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
	s.fraction, s.given = v, true
	return nil
}

// String is the percentage, empty before one was given.
func (s *share) String() string {
	if s.fraction == 0 && !s.given {
		return ""
	}
	return strconv.FormatFloat(100*s.fraction, 'g', -1, 64) + "%"
}

// Type is the word that help shows for the value.
func (s *share) Type() string { return "percent" }
