package rows

import (
	"context"
	"database/sql"
	"slices"
	"strings"
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
func (q Query) resolve(ctx context.Context, db *sql.DB) (*table, error) {
	t := &table{Query: q}
	err := ask(ctx, db, "SELECT rootpage FROM sqlite_master WHERE type = 'table' AND name = ? COLLATE NOCASE", q.Table,
		func(row *sql.Rows) error {
			t.plain = true
			return row.Scan(&t.root)
		})
	if err != nil {
		return nil, err
	}
	err = ask(ctx, db, "SELECT name, type, dflt_value IS NOT NULL, pk, hidden FROM pragma_table_xinfo(?) ORDER BY cid",
		q.Table, func(row *sql.Rows) error {
			var c column
			var declared string
			var key, generated int
			err := row.Scan(&c.name, &declared, &c.constant, &key, &generated)
			c.to = q.place(c.name)
			t.columns = append(t.columns, c)
			// A key may be the row number, a column of reals may hold integers that are
			// read as reals, and a generated column need not be stored.
			if c.to != unread && (key > 0 || isReal(declared)) || generated > 0 || strings.EqualFold(c.name, "rowid") {
				t.plain = false
			}
			return err
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
	return slices.ContainsFunc([]string{"REAL", "FLOA", "DOUB"},
		func(part string) bool { return strings.Contains(declared, part) })
}

// sql selects the wanted columns, converted, in the order in which they are stored.
// No index may change the order of the rows.
func (t *table) sql() string {
	var list []string
	for _, c := range t.wanted() {
		kind := "INTEGER"
		if c.to == toText {
			kind = "TEXT"
		}
		list = append(list, "CAST("+quote(c.name)+" AS "+kind+")")
	}
	return "SELECT " + strings.Join(append(list, "NULL"), ", ") + " FROM " + quote(t.Table) +
		" NOT INDEXED LIMIT -1 OFFSET ?"
}

func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// wanted are the columns that the query reads.
func (t *table) wanted() []column {
	return slices.DeleteFunc(slices.Clone(t.columns), func(c column) bool { return c.to == unread })
}

// step has SQLite read the rows, without the first ones.
func (t *table) step(ctx context.Context, db *sql.DB, without int64, visit func(*Row) error) error {
	found, err := db.QueryContext(ctx, t.sql(), without)
	if err != nil {
		return err
	}
	defer found.Close()
	row, wanted := t.newRow(), t.wanted()
	numbers := make([]sql.NullInt64, len(wanted))
	targets := make([]any, len(wanted), len(wanted)+1)
	for i, c := range wanted {
		targets[i] = &numbers[i]
		if c.to == toText {
			targets[i] = &row.text
		}
	}
	targets = append(targets, new(any))
	for found.Next() {
		if err := found.Scan(targets...); err != nil {
			return err
		}
		clear(row.integers)
		row.null, row.hasText = ^uint64(0), row.text != nil
		for i, c := range wanted {
			if c.to != toText && numbers[i].Valid {
				row.set(c.to, numbers[i].Int64)
			}
		}
		if err := visit(row); err != nil {
			return err
		}
	}
	return found.Err()
}

func (t *table) newRow() *Row { return &Row{integers: make([]int64, len(t.Integers))} }

// ask hands every row of a statement about a table to visit.
func ask(ctx context.Context, db *sql.DB, text, table string, visit func(*sql.Rows) error) error {
	found, err := db.QueryContext(ctx, text, table)
	if err != nil {
		return err
	}
	defer found.Close()
	for found.Next() {
		if err := visit(found); err != nil {
			return err
		}
	}
	return found.Err()
}
