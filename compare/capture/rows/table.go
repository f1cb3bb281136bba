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
	columns []column // in the order in which they are stored, up to the last one wanted
	root    uint32   // page
	plain   bool     // values are stored as they are read
}

// column is a column of the table and where the query wants it: a position in
// Integers, or one of the below.
type column struct {
	name string
	to   int
}

const (
	unread = -1 - iota
	toText
)

// resolve looks the table up.
func (q Query) resolve(ctx context.Context, db *sql.DB) (*table, error) {
	t := &table{Query: q, plain: true}
	var c column
	var declared string
	var key, generated bool
	wanted := 0
	err := Ask(ctx, db, `SELECT m.rootpage, c.name, c.type, c.pk > 0, c.hidden > 0
		FROM sqlite_master m, pragma_table_xinfo(m.name) c
		WHERE m.type = 'table' AND m.name = ? COLLATE NOCASE ORDER BY c.cid`,
		[]any{q.Table}, []any{&t.root, &c.name, &declared, &key, &generated}, func() error {
			c.to = q.place(c.name)
			if t.columns = append(t.columns, c); c.to != unread {
				wanted = len(t.columns)
			}
			// A key may be the row number, a column of reals may hold integers that are
			// read as reals, and a generated column need not be stored.
			if c.to != unread && (key || declared != "INTEGER" && declared != "TEXT") || generated ||
				strings.EqualFold(c.name, "rowid") {
				t.plain = false
			}
			return nil
		})
	t.columns = t.columns[:wanted]
	return t, err
}

// place is where the query wants the column of a name.
func (q Query) place(name string) int {
	if q.Text != "" && strings.EqualFold(q.Text, name) {
		return toText
	}
	return slices.IndexFunc(q.Integers, func(want string) bool { return strings.EqualFold(want, name) }) // −1 is unread
}

// sql selects what the query reads, converted, and NULL for what the table does not have. No
// index may change the order of the rows.
func (t *table) sql() string {
	list := slices.Repeat([]string{"NULL"}, len(t.Integers)+1)
	for _, c := range t.columns {
		switch name := `"` + strings.ReplaceAll(c.name, `"`, `""`) + `"`; {
		case c.to == toText:
			list[len(t.Integers)] = "CAST(" + name + " AS TEXT)"
		case c.to != unread:
			list[c.to] = "CAST(" + name + " AS INTEGER)"
		}
	}
	return "SELECT " + strings.Join(list, ", ") + ` FROM "` + strings.ReplaceAll(t.Table, `"`, `""`) +
		`" NOT INDEXED LIMIT -1 OFFSET ?`
}

// step has SQLite read the rows, without the first ones.
func (t *table) step(ctx context.Context, db *sql.DB, without int64, visit func(*Row) error) error {
	row, numbers, text := t.newRow(), make([]sql.NullInt64, len(t.Integers)), []byte(nil)
	targets := []any{}
	for i := range numbers {
		targets = append(targets, &numbers[i])
	}
	return Ask(ctx, db, t.sql(), []any{without}, append(targets, &text), func() error {
		row.clear()
		row.text, row.hasText = text, text != nil
		for i, n := range numbers {
			if n.Valid {
				row.set(i, n.Int64)
			}
		}
		return visit(row)
	})
}

func (t *table) newRow() *Row { return &Row{integers: make([]int64, len(t.Integers))} }

// Ask puts every row of what a statement with arguments finds into the targets, and calls visit. It returns the first
// error of SQLite or of visit.
func Ask(ctx context.Context, db *sql.DB, text string, arguments, targets []any, visit func() error) error {
	found, err := db.QueryContext(ctx, text, arguments...)
	if err != nil {
		return err
	}
	defer found.Close()
	for found.Next() {
		if err := found.Scan(targets...); err != nil {
			return err
		}
		if err := visit(); err != nil {
			return err
		}
	}
	return found.Err()
}
