package counts

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/placement"
)

// The numbers that a field of an object, a column of a table or a group of a line may name.
const (
	isStep int = iota
	isLayer
	isExpert
	isRank
	isCount     // of the expert or rank
	isStart     // tokens of the request before the first one here
	isPrompt    // tokens of the request's prompt
	isMode      // SGLang's number of the kind of a pass
	isKnown     // experts that the model has
	isRedundant // copies beyond one of each expert
	isRanks
	isTopK
	numbersOf

	isPhase // what follows is text
	isModel
	isData  // a data set
	isUsage // numbers of a request
)

// unknown is a number that nothing names.
const unknown = math.MinInt64

// names of numbers and labels, as plain has them: "Layer Idx" and layer_idx → layer.
var names = map[string]int{
	"step": isStep, "iteration": isStep, "iter": isStep, "forwardpassid": isStep, "eplbstep": isStep,
	"layer": isLayer, "layerid": isLayer, "layeridx": isLayer, "layerindex": isLayer, "moelayer": isLayer, "il": isLayer,
	"expert": isExpert, "expertid": isExpert, "expertidx": isExpert, "expertindex": isExpert, "rank": isRank,
	"count": isCount, "counts": isCount, "tokens": isCount, "numtokens": isCount, "tokencount": isCount,
	"slots": isCount, "numslots": isCount, "hits": isCount,
	"load": isCount, "selectioncount": isCount, "activationcount": isCount,
	"routedexpertsstartlen": isStart, "prompttokens": isPrompt, "forwardmode": isMode, "numexperts": isKnown,
	"numranks": isRanks, "worldsize": isRanks, "epsize": isRanks, "expertparallelsize": isRanks,
	"expertspertoken": isTopK, "numexpertspertoken": isTopK, "numredundantexperts": isRedundant,
	"phase": isPhase, "model": isModel, "modelname": isModel, "dataset": isData, "usage": isUsage,
}

// payload is what a name of counts or choices means: the axes of its array, which may
// lack the outermost. Without the layers, the layer is named beside it, or is the only one.
type payload struct {
	format string
	axes   Axes
	least  int // dimensions
}

const (
	routedFormat = "routed experts per token"
	countsFormat = "SGLang logical counts"
	statFormat   = "SGLang expert distribution (stat)"
	passFormat   = "SGLang expert distribution (per pass)"
	layerFormat  = "counts by layer"
	loadFormat   = "vLLM EPLB load statistics"
	logFormat    = "engine log lines"
)

var (
	layerCounts = payload{layerFormat, Axes{"layers", "experts"}, 1}
	rankCounts  = payload{layerFormat, Axes{"ranks"}, 1}
	choices     = payload{routedFormat, Axes{"tokens", "topk"}, 1}
)

// payloads by name. What an object says beside them, and those around it, tells their step, layer and kind.
var payloads = map[string]payload{
	"counts": layerCounts, "count": layerCounts, "cnt": layerCounts, "load": layerCounts, "expertcounts": layerCounts,
	"tokensperexpert": layerCounts, "rankcounts": rankCounts,
	"topkids": choices, "expertids": choices, "selectedexperts": choices, "topkexperts": choices,
	"routedexperts":       {routedFormat, Axes{"tokens", "layers", "topk"}, 3},
	"logicalcount":        {countsFormat, Axes{"steps", "layers", "experts"}, 2},
	"logicalexpertcounts": {loadFormat, Axes{"layers", "experts"}, 2},
	"expertload":          {loadFormat, Axes{"layers", "copies"}, 1},
	"experthistogram":     {layerFormat, Axes{"ranks", "experts"}, 2}, // of TensorRT-LLM's bench_moe: experts of each rank
	"globalphysicalcount": {passFormat, Axes{"layers", "copies"}, 2},
	"rawdata":             {format: "TensorRT-LLM calibration data"},
}

// context is what an object, or one around it, says of the counts in it.
type context struct {
	numbers     [numbersOf]int64
	phase       Phase
	model, data Phase           // a model or a data set is no phase
	copies      placement.Slots // that are counted
	depth       int             // in how many lists and objects it stands
	keyed       string          // what keys that are numbers number: "layers", experts of a layer, or nothing
}

// nothing is the context of a file's outermost value: no number is known yet.
func nothing() (of context) {
	for i := range of.numbers {
		of.numbers[i] = unknown
	}
	return of
}

func (c *context) has(at int) bool { return c.numbers[at] != unknown }

// describe reads what one field says of the counts beside it and below.
func (c *context) describe(key string, v any) {
	at, known := names[plain(key)]
	switch {
	case !known:
	case at == isPhase: // "Extend" → prefill, "warm-up" → warm-up; a number means something else
		label := strings.ToLower(strings.TrimSpace(word(v)))
		c.phase = cmp.Or(phases[label], Phase(label))
	case at == isModel:
		c.model = Phase(word(v))
	case at == isData:
		c.data = Phase(word(v))
	case at == isUsage:
		each(v, c.describe)
	default:
		if n, err := number(v); err == nil && (n >= 0 || at == isCount || at == isExpert) {
			c.numbers[at] = n
		}
	}
}

// records reads the trees of a document. An object that holds no counts is about those after it.
func (c *collector) records(d *document) {
	of := nothing()
	read := func(v any) {
		if isArray(v) {
			c.bare(v, &of)
		} else {
			c.walk(v, &of)
		}
	}
	read(d.root) // many a document is one record
	n := 2
	for v, more := d.next(); more; v, more = d.next() {
		within(fmt.Sprint("record ", n), func() { read(v) })
		n++
	}
}

// each does something with each part of an object, whose name a fault tells, or of a list.
func each(v any, do func(key string, v any)) {
	object, _ := v.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(object)) {
		within(key, func() { do(key, object[key]) })
	}
	for _, item := range listOf(v) {
		do("", item)
	}
}

// maxDepth is more than any document has.
const maxDepth = 32

// walk reads what stands in an object or a list; around is what is known outside, and learns what an object without
// counts says.
func (c *collector) walk(v any, around *context) {
	of := *around
	if of.depth++; of.depth > maxDepth {
		fail("want at most %d lists and objects within one another", maxDepth)
	}
	about, several := of.depth == 1, false // of the document, with nothing below; counts that differ
	of.numbers[isCount] = unknown
	each(v, func(key string, v any) {
		before := of.numbers[isCount]
		of.describe(key, v)
		about, several = about && isLeaf(v), several || before != unknown && before != of.numbers[isCount]
	})
	switch {
	case of.has(isExpert) && (several || part(v, "hits") != nil && part(v, "misses") != nil): // of a cache
		fail("want one count of an expert, have several, such as hits and misses: leave one")
	case of.has(isCount) && (of.has(isExpert) || of.has(isRank) && of.has(isLayer)):
		c.cell(of)
		return
	case c.Format == logFormat && (part(v, "even") != nil || part(v, "uneven") != nil):
		c.report(v, of)
		return
	}
	each(v, func(key string, v any) { c.hold(&of, plain(key), v) })
	each(v, func(key string, in any) { c.part(of, v, key, in) })
	if about {
		*around = of
		around.depth = 0
	}
}

// numbered are the keys that number a layer for all that is below them, also a bare number: layer_3,
// model.layers.3.mlp and 3.
var numbered = regexp.MustCompile(`^(?:.*\.)?layers?[._-]?(\d{1,5})(?:\..*)?$|^(\d{1,5})$`)

// part reads one part of an object or a list.
func (c *collector) part(of context, object any, key string, v any) {
	p, isPayload := payloads[plain(key)]
	counts := isPayload && p.format == layerFormat
	m := numbered.FindStringSubmatch(key)
	alone := m != nil && m[2] != ""
	switch {
	case isPayload && (isArray(v) || !counts):
		c.payload(p, v, object, of)
		return
	case alone && of.keyed == router.LevelExpert && isLeaf(v):
		of.numbers[isExpert], of.numbers[isCount] = must(number(key)), must(number(v))
		c.cell(of)
		return
	case alone && of.keyed == "" && (of.depth > 1 || !isArray(v)):
	case alone && of.depth == 1 && isArray(v) && isMap(arrayOf(v)):
		fail("%w", errPlacement)
	case m != nil:
		if of.numbers[isLayer], of.keyed = must(number(m[1]+m[2])), router.LevelExpert; isArray(v) {
			c.payload(layerCounts, v, object, of)
		}
	case counts || key == "experts":
		of.keyed = router.LevelExpert
	case key == "layers":
		of.keyed = key
	}
	if of.phase = cmp.Or(phases[key], of.phase); !isArray(v) { // {"prefill": {…}, "decode": {…}}
		c.walk(v, &of)
	}
}

// cell adds the slots of one expert or rank.
func (c *collector) cell(of context) {
	c.Format = layerFormat
	c.atLeast, c.stepped, c.layered = true, c.stepped || of.has(isStep), c.layered || of.has(isLayer)
	level, at := router.LevelExpert, of.numbers[isExpert]
	if !of.has(isExpert) {
		level, at = router.LevelRank, of.numbers[isRank]
	}
	c.agree(Axes{level + "s"})
	c.add(c.at(of.key()), level, int(at), of.numbers[isCount], true)
}

// payload adds what stands under the key of a payload, in an object.
func (c *collector) payload(p payload, v, object any, of context) {
	c.Format = p.format
	switch {
	case v == nil:
		return
	case p.axes == nil:
		c.calibrated(v, object, of)
		return
	case p.axes.areChoices():
		of.numbers[isStep] = unknown
		if p.least == 1 && !of.has(isLayer) || part(object, "expert_counts") != nil { // about the model, or counted there
			return
		}
	case p.format == loadFormat && of.copies == nil && of.numbers[isRedundant] < 1: // each expert is its only copy
		p = layerCounts
	}
	a := routes(v, object)
	n := len(a.Shape)
	switch {
	case n < p.least || n > len(p.axes):
		fail("want %s, have %v; give a list alone in its file, with --axes, of other dimensions",
			strings.Join(p.axes, " × "), a.Shape)
	case of.numbers[isKnown] > maxExperts:
		fail("want at most %d experts, have %d", maxExperts, of.numbers[isKnown])
	case p.axes.has("copies"):
		c.sources = max(1, c.sources)
	}
	c.TopK = int(min(max(int64(c.TopK), of.numbers[isTopK]), maxTopK))
	c.known = max(c.known, of.numbers[isKnown])
	c.onRanks(of.numbers[isRanks])
	c.array(a, p.axes[len(p.axes)-n:], of)
}

// onRanks takes the ranks that an object names as the ranks of the record.
func (c *collector) onRanks(ranks int64) {
	if ranks <= 0 {
		return
	}
	if c.Ranks = cmp.Or(c.Ranks, int(min(ranks, maxRanks))); ranks != int64(c.Ranks) {
		fail("want at most %d ranks, the same in all steps, have %d and %d", maxRanks, c.Ranks, ranks)
	}
}
