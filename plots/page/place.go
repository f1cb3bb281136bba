package page

import (
	"fmt"
	"strings"

	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/plots"
)

// placementSection shows what another placement of the experts would gain.
func (p *program) placementSection() section {
	s := section{ID: "place", Title: "What would another placement gain?", Short: "Placement", tableGroup: "place"}
	s.Answer = strings.Join(p.lines(isPlace), "\n")
	for i, in := range p.of(isPlace) {
		s.keyed(key(in.answer))
		figures, err := plots.Placement(in.Place)
		for _, f := range figures {
			if i > 0 {
				f.Name = fmt.Sprintf("%s-%d", f.Name, i+1)
			}
			s.addFigure(f, nil)
		}
		if err != nil {
			s.err = err
		}
	}
	return s
}

func isPlace(in source.Item) bool { return in.Place != nil }
