package compare

// Arm is one of the two routings compared.
type Arm string

// The arms, in the words of reports, flags and JSON.
const (
	Normal  Arm = "normal"  // the learned router
	Perfect Arm = "perfect" // balanced routing
)

// Arms lists both in the order reports show them.
var Arms = [2]Arm{Normal, Perfect}

// Metric is what a campaign compares. Unit is as printed, such as "tok/s".
type Metric struct {
	Name           string `json:"name"`
	Unit           string `json:"unit"`
	HigherIsBetter bool   `json:"higher_is_better"`
	// Definition says how the number is computed, in the words of what reported
	// it: two launches with different definitions measured different things.
	Definition string `json:"definition"`
}
