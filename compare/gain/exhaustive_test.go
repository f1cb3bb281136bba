//go:build exhaustive

package gain

// campaigns are simulated of each cell: the tables of the package comment are of these.
const campaigns = 2000
