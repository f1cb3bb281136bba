package page

import (
	"fmt"
	"strings"

	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/plots"
	"github.com/moebalance/moebalance/router/quantity"
)

// placed answers what another placement of the experts would win.
func (p Page) placed() section {
	s := section{ID: "place", Title: "What would another placement win?"}
	var said []string
	for i, in := range p.only(func(in source.Item) bool { return in.Place != nil }) {
		res := in.Place
		said = append(said, strings.TrimSuffix(plots.PlacementAnswer(res), "."))
		if res.NoTime != "" {
			s.addText(in.Name + ": " + res.NoTime + ".")
		}
		figures, err := plots.Placement(res)
		for _, f := range figures {
			if i > 0 {
				f.Name = fmt.Sprintf("%s-%d", f.Name, i+1)
			}
			s.addFigure(f, nil)
		}
		if err != nil {
			s.err = err
		}
		t := table{Caption: "Placements of " + in.Name, Columns: columns("#ranks", "#redundant", "#learned max/mean", "#judged max/mean", "#contiguous max/mean", "predicted time (inferred)", "#steps to pay back", "verdict")}
		for _, row := range res.Placements {
			time := quantity.Unknown
			if row.Time != nil {
				time = row.Time.String()
			}
			t.add(row.Ranks, row.Redundant, row.Learned, row.Judged, row.Contiguous, time, quantity.Digits3(row.PaidBackAfter), row.Verdict)
		}
		s.addTable(t)
	}
	if len(said) > 0 {
		s.Answer = strings.Join(said, ". ") + "."
	}
	return s
}
