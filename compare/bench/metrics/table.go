package metrics

import (
	"regexp"
	"strconv"
	"strings"
)

// tableTitle is the title of the labels of a table.
const tableTitle = "table"

var (
	header = regexp.MustCompile(`^[│┃|]?\s*(?:Metric|Statistic|Key|Performance Parameters|Common Metric)\s*([,│┃|])`)
	// cells are apart by bars, or by commas but for the ones in quotes.
	cells = map[bool]*regexp.Regexp{true: regexp.MustCompile(`"[^"]*"|[^,]+`), false: regexp.MustCompile(`[^│┃|]+`)}
	// goesOn is a line that ends no table: a rule, or a label that goes on: "│ (tokens/sec/user) │    │".
	goesOn = regexp.MustCompile(`^[^\w"]*$|│`)
)

// inTable takes a line of a printed table, or of CSV, and reports whether it is one. A header says what stands in its
// columns, and paths are like the ones of AIPerf's JSON:
//
//	┃ Metric ┃ avg ┃ p99 ┃ and │ Request Latency (ms) │ 3,651.23 │ N/A │ → "request_latency/avg" 3651.23 in ms
//	Metric,Value and Output Token Throughput (tokens/sec),"1,598.78"   → "output_token_throughput/avg" 1598.78
func (p *parser) inTable(d *document) bool {
	line := d.printed[:min(len(d.printed), maxLine)]
	if head := header.FindStringSubmatch(line); head != nil {
		p.commas = head[1] == ","
		p.columns = p.cells(strings.ReplaceAll(strings.ToLower(line), "value", "avg"))
		if p.labels.title != tableTitle || p.labels.has(line) { // tools have two tables, with headers of their own
			p.read(&p.labels)
			p.labels = document{line: d.line, title: tableTitle}
		}
		p.labels.set(line, value{})
		return true
	}
	if len(p.columns) == 0 {
		return false
	}
	row := p.cells(line)
	if len(row) < 2 || len(row) > len(p.columns) || strings.ContainsAny(row[0], ":=") { // "Throughput: 6 req/s, 9 tok/s"
		if !goesOn.MatchString(line) {
			p.columns = nil
		}
		return p.columns != nil
	}
	name, of, _ := strings.Cut(strings.ToLower(row[0]), " (")
	for i, cell := range row[1:] {
		m := printedNumber.FindStringSubmatch(strings.ReplaceAll(cell, ",", ""))
		if v, err := strconv.ParseFloat(append(m, "", "")[1], 64); err == nil {
			unit := strings.TrimPrefix(strings.TrimSpace(m[2]+m[3]+strings.TrimSuffix(of, ")")), "per sec")
			d.set(strings.ReplaceAll(name, " ", "_")+"/"+p.columns[i+1], value{is: v, unit: unit})
		}
	}
	return true
}

// cells are the texts of a row.
func (p *parser) cells(line string) (row []string) {
	for _, cell := range cells[p.commas].FindAllString(strings.Trim(line, "│┃| \t"), -1) {
		row = append(row, strings.Trim(cell, `" `))
	}
	return row
}
