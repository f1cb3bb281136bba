// Package page puts the results of a measurement into one HTML page that stands
// alone: figures inline, no script, nothing fetched from anywhere.
//
// The page answers six questions in a fixed order: is the data complete and
// balance verified, how imbalanced and where, does time follow load, compute or
// communication, what is the ceiling, what next. A section appears when an
// input speaks to it. The same inputs give the same bytes.
//
//	in, err := source.ReadResult("trace.json")
//	p, err := page.New("gpt-oss-120b, EP4", []source.Item{in})
//	err = p.Write(w)
//
// Every number keeps its unit, its floor and its basis (observed, allocated or
// recorded); what is undefined is shown as "–", never as 0.
package page
