package router

// Load counts slots per logical expert. The zero value is unusable; NewLoad
// makes one. Merging loads in any order gives the same counts.
type Load struct {
	PerExpert []int64 `json:"per_expert"`
}

// NewLoad returns an empty load over the given number of experts.
func NewLoad(experts int) Load { return Load{PerExpert: make([]int64, experts)} }

// Add counts the chosen experts of any number of tokens.
func (l Load) Add(ids []int32) {
	for _, e := range ids {
		l.PerExpert[e]++
	}
}

// Merge adds the counts of another load, which must be over the same experts.
func (l Load) Merge(other Load) {
	for e, n := range other.PerExpert {
		l.PerExpert[e] += n
	}
}

// Total is the number of slots.
func (l Load) Total() int64 {
	var sum int64
	for _, n := range l.PerExpert {
		sum += n
	}
	return sum
}

// Experts is the balance of the slots over the experts.
func (l Load) Experts() Balance { return BalanceOf(l.PerExpert) }

// Ranks is the balance of the slots over the ranks of a layout.
func (l Load) Ranks(layout Layout) Balance { return BalanceOf(layout.RankLoad(l.PerExpert)) }
