package counts

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"strings"

	"github.com/moebalance/moebalance/compare/counts/tensor"
	"github.com/moebalance/moebalance/router"
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
)

// unknown is a number that nothing names.
const unknown = math.MinInt64

// names of numbers, as plain has them: "Layer Idx" and layer_idx → layer.
var names = map[string]int{
	"step": isStep, "iteration": isStep, "iter": isStep, "forwardpassid": isStep, "eplbstep": isStep,
	"layer": isLayer, "layerid": isLayer, "layeridx": isLayer, "layerindex": isLayer, "moelayer": isLayer,
	"expert": isExpert, "expertid": isExpert, "expertidx": isExpert, "expertindex": isExpert, "rank": isRank,
	"count": isCount, "counts": isCount, "tokens": isCount, "numtokens": isCount, "tokencount": isCount,
	"slots": isCount, "numslots": isCount, "load": isCount, "selectioncount": isCount, "activationcount": isCount,
	"routedexpertsstartlen": isStart, "prompttokens": isPrompt, "forwardmode": isMode, "numexperts": isKnown,
	"numranks": isRanks, "worldsize": isRanks, "epsize": isRanks, "expertparallelsize": isRanks,
	"expertspertoken": isTopK, "numexpertspertoken": isTopK, "numredundantexperts": isRedundant,
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

	calibrationFormat = "TensorRT-LLM calibration data"
)

var (
	layerCounts = payload{layerFormat, Axes{"layers", "experts"}, 1}
	rankCounts  = payload{layerFormat, Axes{"ranks"}, 1}
	choices     = payload{routedFormat, Axes{"topk"}, 1}
)

// payloads by name. What an object says beside them, and those around it, tells their step, layer and kind.
var payloads = map[string]payload{
	"counts": layerCounts, "load": layerCounts, "expertcounts": layerCounts, "tokensperexpert": layerCounts,
	"rankcounts": rankCounts, "topkids": choices, "expertids": choices, "selectedexperts": choices,
	"routedexperts":       {routedFormat, Axes{"tokens", "layers", "topk"}, 3},
	"logicalcount":        {countsFormat, Axes{"steps", "layers", "experts"}, 2},
	"logicalexpertcounts": {loadFormat, Axes{"layers", "experts"}, 2},
	"expertload":          {loadFormat, Axes{"layers", "copies"}, 1},
	"globalphysicalcount": {passFormat, Axes{"layers", "copies"}, 2},
	"rawdata":             {format: calibrationFormat},
}

// context is what an object, or one around it, says of the counts in it.
type context struct {
	numbers      [numbersOf]int64
	phase, model Phase // a model or a data set is no phase
	copies       Slots // that are counted
	depth        int   // in how many lists and objects it stands
	keyed        bool  // it stands in an object whose keys are numbers of layers, or of a layer's experts
	counted      bool  // that object has a name of counts
}

// nothing is the context of a file's outermost value: no number is known yet.
func nothing() (of context) {
	for i := range of.numbers {
		of.numbers[i] = unknown
	}
	return of
}

func (of *context) has(at int) bool { return of.numbers[at] != unknown }

// describe reads what one field, its name as plain has it, says of the counts beside it and below.
func (of *context) describe(name string, v any) {
	at, isNumber := names[name]
	switch name {
	case "phase":
		of.phase = phaseOf(word(v)) // a number means something else
	case "model", "modelname":
		of.model = Phase(word(v))
	case "dataset":
		of.model = Phase(strings.Trim(string(of.model)+", "+word(v), ", "))
	case "usage":
		at, isNumber, v = isPrompt, true, part(v, "prompt_tokens")
	}
	if n, ok := number(v); ok && isNumber && (n >= 0 || at == isCount || at == isExpert) {
		of.numbers[at] = n
	}
}

// maxDepth is more than any document has.
const maxDepth = 32

// objects reads the counts of objects wherever they stand in a document. One that holds none is about
// those after it.
func (c *collector) objects(d *document, of context) {
	c.unit, c.number = "record", 1
	for v := range d.records {
		c.walk(v, &of)
		c.number++
	}
}

// each does something with each part of an object or a list, whose name a fault tells.
func (c *collector) each(v any, do func(key string, v any)) {
	for _, part := range items(v) {
		c.keys = append(c.keys, part.Name)
		do(part.Name, part.Value)
		c.keys = c.keys[:len(c.keys)-1]
	}
}

// walk reads what stands in an object or a list; around is what is known outside, and learns what an object without
// counts says.
func (c *collector) walk(v any, around *context) {
	of := *around
	if of.depth++; of.depth > maxDepth {
		fail("want at most %d lists and objects within one another", maxDepth)
	}
	about := of.depth == 1 // of the document, with nothing below
	of.numbers[isCount] = unknown
	c.each(v, func(key string, v any) {
		of.describe(plain(key), v)
		_, isArray := v.(tensor.Stored)
		about = about && !isArray && items(v) == nil
	})
	if of.has(isCount) && (of.has(isExpert) || of.has(isRank) && of.has(isLayer)) {
		c.cell(of)
		return
	}
	c.each(v, func(key string, v any) { c.hold(&of, plain(key), v) })
	c.each(v, func(key string, in any) { c.part(of, v, key, in) })
	if about {
		*around = of
		around.depth = 0
	}
}

// numbered are the keys that number a layer for all that is below them, also a bare number: layer_3,
// model.layers.3.mlp and 3. stepLayer names a tensor of TensorRT-LLM's statistics: 100_3 is of iteration 100, layer 3.
var (
	numbered  = regexp.MustCompile(`^(?:.*\.)?layers?[._-]?(\d{1,5})(?:\..*)?$|^(\d{1,5})$`)
	stepLayer = regexp.MustCompile(`^(\d{1,18})_(\d{1,5})$`)
)

// part reads one part of an object or a list.
func (c *collector) part(of context, object any, key string, v any) {
	p, isPayload := payloads[plain(key)]
	_, isArray := v.(tensor.Stored)
	if c.ofAll {
		m := stepLayer.FindStringSubmatch(key)
		if m == nil {
			fail("want tensors named iteration_layer, have %q", key)
		}
		of.numbers[isStep], of.numbers[isLayer] = must(whole(m[1])), must(whole(m[2]))
		p, isPayload = payload{layerFormat, Axes{"experts"}, 1}, true
	}
	counts := isPayload && p.format == layerFormat
	if isPayload && (isArray || !counts) {
		c.payload(p, v, object, of)
		return
	}
	m := numbered.FindStringSubmatch(key)
	alone := m != nil && m[2] != ""
	if alone && !of.keyed && (of.depth > 1 || !isArray) {
		m = nil
	}
	if m != nil {
		n := must(whole(m[1] + m[2]))
		if alone && !isArray && items(v) == nil && (of.counted || of.has(isLayer)) {
			of.numbers[isExpert], of.numbers[isCount] = n, must(whole(fmt.Sprint(v)))
			c.cell(of)
			return
		}
		of.numbers[isLayer] = n
	}
	of.phase = cmp.Or(phases[key], of.phase) // {"prefill": {…}, "decode": {…}}
	of.keyed = of.keyed || counts || m != nil || key == "layers"
	of.counted = of.counted || counts
	switch {
	case m == nil || !isArray:
		c.walk(v, &of)
	case alone && of.depth == 1 && isMap(arrayOf(v)):
		fail("%w", errPlacement)
	default:
		c.payload(layerCounts, v, object, of)
	}
}

// cell adds the slots of one expert or rank.
func (c *collector) cell(of context) {
	c.Format = layerFormat
	c.atLeast, c.stepped = true, c.stepped || of.has(isStep)
	level, at := router.LevelExpert, of.numbers[isExpert]
	if !of.has(isExpert) {
		level, at = router.LevelRank, of.numbers[isRank]
	}
	c.asked.agree(Axes{level + "s"})
	c.add(c.at(of.key()), level, int(at), []int64{of.numbers[isCount]}, true)
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
		if of.numbers[isStep] = unknown; p.least == 1 && !of.has(isLayer) { // about the model
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
	case p.axes.has("copies"):
		c.sources = max(1, c.sources)
	}
	if n := of.numbers[isTopK]; n > 0 {
		c.TopK = int(min(n, maxTopK))
	}
	c.known = max(c.known, of.numbers[isKnown])
	c.onRanks(of.numbers[isRanks])
	c.array(a, p.axes[len(p.axes)-n:], of)
}

// onRanks takes the ranks that an object names as the ranks of the record.
func (c *collector) onRanks(ranks int64) {
	if c.Ranks == 0 && ranks > 0 && ranks <= maxRanks {
		c.Ranks = int(ranks)
	}
	if ranks > 0 && ranks != int64(c.Ranks) {
		fail("want at most %d ranks, the same in all steps, have %d and %d", maxRanks, c.Ranks, ranks)
	}
}
