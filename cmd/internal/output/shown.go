package output

// Shown is what people see of a table: its headings with their units, which of them are
// of numbers, and at most n rows, the largest first; left is how many rows that leaves out.
func (t Table) Shown(n int) (head []string, numeric []bool, rows [][]string, left int) {
	n = min(n, len(t.Rows))
	left, t.Rows = len(t.Rows)-n, t.largest(n)
	rows = make([][]string, n)
	for _, c := range t.sheet().columns {
		head, numeric = append(head, c.head), append(numeric, c.Kind != Label)
		for i, cell := range c.cells {
			rows[i] = append(rows[i], cell)
		}
	}
	return head, numeric, rows, left
}
