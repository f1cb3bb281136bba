//go:build !exhaustive

package gain

// campaigns are simulated of each cell.
const campaigns = 60
