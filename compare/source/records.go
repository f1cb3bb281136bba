package source

import (
	"errors"

	"github.com/moebalance/moebalance/compare/bench"
	"github.com/moebalance/moebalance/compare/bench/metrics"
)

// RecordsOf are the files of arguments that are records of launches which held both arms; none unless
// all are.
func RecordsOf(args []string) (paths []string, err error) {
	for _, arg := range args {
		inputs, err := Classify(arg, nil)
		if err != nil {
			return nil, err
		}
		for _, in := range inputs {
			if in.Kind != Records {
				return nil, nil
			}
			paths = append(paths, in.Paths...)
		}
	}
	if twice, ok := repeated(paths); ok {
		return nil, usagef("%s is named twice", twice)
	}
	return paths, nil
}

// JudgeRecords judges such launches as a campaign.
func JudgeRecords(paths []string, judged bench.Spec) (Campaign, error) {
	c, err := bench.OfRecords(paths, judged)
	if errors.Is(err, metrics.ErrUnchosen) {
		return Campaign{}, marked{err, ErrUsage}
	}
	if err != nil {
		return Campaign{}, err
	}
	return Judge(c), nil
}
