// Package plots draws what the measurements say: values in, figures out.
//
// There are five figures: a heat map of time or load, bars of the parts of a rank's time,
// the gain of each launch, the curve of gains by load, and a placement before and after. Each
// function takes a result or plain values and returns a Figure, which has a title, a caption and a
// description in words, and can be written as SVG or PNG; the same values give the same
// bytes. The package measures nothing and opens no file; package page puts figures and
// numbers together into one report.
//
//	fig := plots.HeatMap(plots.RankLayerTimes(plots.Arm{Name: "learned routing", Trace: trace}))
//	err := fig.SVG(w)
package plots
