// Package page puts the results of a measurement into one HTML page that stands
// alone: figures inline, no script, nothing fetched from anywhere.
//
// The page begins with the answer in one sentence, by the strongest evidence given: a
// campaign, else traces of both arms, of one, else counts. The evidence follows, then the
// quality of the data, then definitions. A section appears when an input speaks to it.
// All inputs are of one program. The same inputs give the same bytes.
//
//	p := page.New("gpt-oss-120b, EP4", nil, page.Input{Item: in})
//	err := p.Write(w)
//
// The package computes nothing: numbers come from the results, tables and headlines from
// whoever prints them. What is undefined is shown as "–", never as 0.
package page
