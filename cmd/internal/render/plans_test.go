package render

import (
	"strings"
	"testing"

	"github.com/moebalance/moebalance/router/plan"
)

func TestPlansVerdicts(t *testing.T) {
	for _, c := range []struct {
		certificate *plan.Certificate
		verdict     string
		fault       string
	}{
		{&plan.Certificate{Valid: true, Optimal: true}, "optimal", ""},
		{&plan.Certificate{Valid: true}, "not optimal", ""},
		{&plan.Certificate{Duplicates: 1}, "invalid", "twice"},
		{&plan.Certificate{Disagreements: 1}, "invalid", "differently"},
		{&plan.Certificate{Groups: 8, GroupsLimit: 4}, "invalid", "8 groups, the method allows 4"},
		{nil, "refused", "wants equal ranks"},
	} {
		row := plan.Case{Name: "x", Certificate: c.certificate, Refused: "wants equal ranks"}
		fault := caseFault(row, Plans{Plans: []plan.Case{row}}.mostGroups("x"))
		if caseVerdict(row) != c.verdict || !strings.Contains(fault, c.fault) || (c.fault == "") != (fault == "") {
			t.Errorf("%+v: %s, %q; want %s, something about %q", c.certificate, caseVerdict(row), fault, c.verdict, c.fault)
		}
	}
}
