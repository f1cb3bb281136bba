package plots

import (
	"fmt"
	"strings"

	"gonum.org/v1/gonum/floats"

	"github.com/moebalance/moebalance/router/quantity"
)

// Means are the times of one arm's stacks as means over ranks.
type Means struct {
	Name       string
	Work       []float64 // by phase
	Collective float64   // wait and transfer
	Wait       float64   // the part of it before the last rank arrived; NaN where that is unknown of a rank
}

// Means are taken over the ranks that every arm has, so that a rank of which
// one arm has no trace does not pass for a difference between the arms. Without
// such a rank all are NaN.
func (s StackSpec) Means() []Means {
	shared := s.shared()
	var out []Means
	for _, a := range s.Arms {
		mean := func(of func(rank int) float64) float64 {
			sum, n := 0.0, 0.0
			for r, rank := range a.Ranks {
				if shared[rank] {
					sum, n = sum+of(r), n+1
				}
			}
			return sum / n
		}
		m := Means{
			Name:       a.Name,
			Collective: mean(func(r int) float64 { return sumDrawable(a.Wait[r], a.Transfer[r]) }),
			Wait:       mean(func(r int) float64 { return a.Wait[r] }),
		}
		for p := range s.Phases {
			m.Work = append(m.Work, mean(func(r int) float64 { return a.Work[r][p] }))
		}
		out = append(out, m)
	}
	return out
}

// Over says which ranks Means are over.
func (s StackSpec) Over() string {
	all := map[int]bool{}
	for _, a := range s.Arms {
		for _, rank := range a.Ranks {
			all[rank] = true
		}
	}
	if shared := len(s.shared()); shared < len(all) {
		return fmt.Sprintf("the %s that every arm has", quantity.Count(shared, "rank"))
	}
	return "ranks"
}

// shared are the ranks that every arm has.
func (s StackSpec) shared() map[int]bool {
	arms := map[int]int{}
	for _, a := range s.Arms {
		for r, rank := range a.Ranks {
			if known(a.Transfer[r]) {
				arms[rank]++
			}
		}
	}
	out := map[int]bool{}
	for rank, n := range arms {
		if n == len(s.Arms) {
			out[rank] = true
		}
	}
	return out
}

func (s StackSpec) answer() string {
	if len(s.shared()) == 0 {
		return "No rank has kernel time in every arm."
	}
	var out []string
	for _, m := range s.Means() {
		waiting := ""
		if known(m.Wait) {
			waiting = fmt.Sprintf(" (%s of it waiting)", Duration(m.Wait))
		}
		out = append(out, fmt.Sprintf("%s: %s of work and %s in collectives%s %s, mean over %s.", m.Name, Duration(floats.Sum(m.Work)), Duration(m.Collective), waiting, s.Per, s.Over()))
	}
	return strings.Join(out, " ")
}
