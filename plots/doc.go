// Package plots draws what the measurements say: values in, figures out.
//
// Every figure function takes plain values (a Grid, a set of Bars, Pairs) and
// returns a Figure, which knows its question, its caption and its description
// in words, and can be written as SVG or PNG; the same values give the same
// bytes. Functions over Arms, such as RankTimes and ExpertLoads, turn traces into
// those values. The package measures nothing and opens no file; package page puts
// figures and numbers together into one report.
//
//	fig, err := plots.HeatMap(plots.HeatSpec{Title: "Which experts are hot?", Grids: []plots.Grid{g}})
//	if err != nil { … }
//	err = fig.SVG(w)
package plots
