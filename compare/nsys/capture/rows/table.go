package rows

import (
	"slices"
	"strings"

	"zombiezen.com/go/sqlite"
)

// table is what SQLite says of a query's table.
type table struct {
	Query
	columns []column // in the order in which they are stored
	root    uint32   // page
	plain   bool     // values are stored as they are read
}

// column is a column of the table and where the query wants it: a position in
// Integers, or one of the below.
type column struct {
	name     string
	to       int
	constant bool // rows older than the column have another value than NULL
}

const (
	unread = -1 - iota
	toText
)

// resolve looks the table up.
func (q Query) resolve(conn *sqlite.Conn) (*table, error) {
	t := &table{Query: q}
	err := ask(conn, "SELECT rootpage FROM sqlite_master WHERE type = 'table' AND name = ? COLLATE NOCASE", q.Table, func(stmt *sqlite.Stmt) {
		t.root, t.plain = uint32(stmt.ColumnInt64(0)), true
	})
	if err != nil {
		return nil, err
	}
	err = ask(conn, "SELECT name, type, dflt_value IS NOT NULL, pk, hidden FROM pragma_table_xinfo(?) ORDER BY cid", q.Table, func(stmt *sqlite.Stmt) {
		c := column{name: stmt.ColumnText(0), constant: stmt.ColumnBool(2)}
		c.to = q.place(c.name)
		t.columns = append(t.columns, c)
		key, generated := stmt.ColumnBool(3), stmt.ColumnBool(4)
		// A key may be the row number, a column of reals may hold integers that are
		// read as reals, and a generated column need not be stored.
		if c.to != unread && (key || isReal(stmt.ColumnText(1))) || generated || strings.EqualFold(c.name, "rowid") {
			t.plain = false
		}
	})
	return t, err
}

// place is where the query wants the column of a name.
func (q Query) place(name string) int {
	if q.Text != "" && strings.EqualFold(q.Text, name) {
		return toText
	}
	return slices.IndexFunc(q.Integers, func(want string) bool { return strings.EqualFold(want, name) }) // −1 is unread
}

// isReal reports whether SQLite may take a column so declared for one of reals.
func isReal(declared string) bool {
	declared = strings.ToUpper(declared)
	return slices.ContainsFunc([]string{"REAL", "FLOA", "DOUB"}, func(part string) bool { return strings.Contains(declared, part) })
}

// sql selects the wanted columns in the order in which they are stored. No index
// may change the order of the rows.
func (t *table) sql() string {
	var list []string
	for _, c := range t.wanted() {
		list = append(list, quote(c.name))
	}
	return "SELECT " + strings.Join(append(list, "NULL"), ", ") + " FROM " + quote(t.Table) + " NOT INDEXED WHERE rowid BETWEEN ? AND ? LIMIT -1 OFFSET ?"
}

func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// wanted are the columns that the query reads.
func (t *table) wanted() []column {
	return slices.DeleteFunc(slices.Clone(t.columns), func(c column) bool { return c.to == unread })
}

// step has SQLite read the rows, without the first ones.
func (t *table) step(stmt *sqlite.Stmt, without int64, visit func(*Row) error) error {
	stmt.BindInt64(1, t.Rows.First)
	stmt.BindInt64(2, t.Rows.Last)
	stmt.BindInt64(3, without)
	row, wanted := t.newRow(), t.wanted()
	for {
		more, err := stmt.Step()
		if err != nil || !more {
			return err
		}
		row.clear()
		for i, c := range wanted {
			switch {
			case stmt.ColumnIsNull(i):
			case c.to == toText:
				row.text = slices.Grow(row.text[:0], stmt.ColumnLen(i))[:stmt.ColumnLen(i)]
				stmt.ColumnBytes(i, row.text)
				row.hasText = true
			default:
				row.set(c.to, stmt.ColumnInt64(i))
			}
		}
		if err := visit(row); err != nil {
			return err
		}
	}
}

func (t *table) newRow() *Row { return &Row{integers: make([]int64, len(t.Integers))} }

// ask hands every row of a statement about a table to visit.
func ask(conn *sqlite.Conn, sql, table string, visit func(*sqlite.Stmt)) error {
	stmt, _, err := conn.PrepareTransient(sql)
	if err != nil {
		return err
	}
	defer func() { _ = stmt.Finalize() }()
	stmt.BindText(1, table)
	for {
		more, err := stmt.Step()
		if err != nil || !more {
			return err
		}
		visit(stmt)
	}
}
