package source

import (
	"errors"

	"github.com/moebalance/moebalance/compare/bench"
	"github.com/moebalance/moebalance/compare/bench/control"
	"github.com/moebalance/moebalance/compare/bench/metrics"
)

// Records are the files of arguments, or of the folders or patterns among them, that are records
// of launches which held both arms, as moebalance_hook.alternate prints them; none unless all are.
func Records(args []string) (paths []string, err error) {
	for _, arg := range args {
		files, err := expand(arg, nil)
		if err != nil {
			return nil, nil // whoever takes it for another kind of argument says what is wrong
		}
		for _, path := range files {
			if head, err := headOf(path); err != nil || !control.IsRecord(head) {
				return nil, nil // another kind of argument
			}
		}
		paths = append(paths, files...)
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
