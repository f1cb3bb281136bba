package counts

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/router"
)

// The numbers that a field of an object, a column of a table or a group of a line may name.
const (
	isStep int = iota
	isLayer
	isExpert
	isRank
	isCount  // of the expert or rank
	isStart  // tokens of the request before the first one here
	isPrompt // tokens of the request's prompt
	isMode   // SGLang's number of the kind of a pass
	isKnown  // experts that the model has
	isRanks
	isTopK
	numbersOf
)

// names of numbers and words, as plain has them: "Layer Idx" and layer_idx → layer.
var names = func() map[string]int {
	all := map[string]int{}
	for at, spellings := range map[int]string{
		isStep:   "step iteration iter forwardpassid eplbstep",
		isLayer:  "layer layerid layeridx layerindex moelayer",
		isExpert: "expert expertid expertidx expertindex logicalexpertid",
		isRank:   "rank dsteprank le",
		isCount:  "count counts tokens numtokens tokencount slots numslots load selectioncount activationcount",
		isStart:  "routedexpertsstartlen", isPrompt: "prompttokens", isMode: "forwardmode", isKnown: "numexperts",
		isRanks: "numranks worldsize epsize expertparallelsize", isTopK: "expertspertoken",
	} {
		for name := range strings.FieldsSeq(spellings) {
			all[name] = at
		}
	}
	return all
}()

// payload is what a name of counts or choices means: the axes of its array, which may
// lack the outermost. Without the layers, the layer is named beside it.
type payload struct {
	format string
	axes   Axes
	least  int  // dimensions
	window bool // a step is the sum of many
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
	layerCounts = payload{layerFormat, Axes{"layers", "experts"}, 1, false}
	rankCounts  = payload{layerFormat, Axes{"ranks"}, 1, false}
	choices     = payload{routedFormat, Axes{"topk"}, 1, false}
)

// payloads by name. What an object says beside them, and those around it, tells their step, layer and kind.
var payloads = map[string]payload{
	"counts": layerCounts, "load": layerCounts, "expertcounts": layerCounts, "tokensperexpert": layerCounts,
	"rankcounts": rankCounts, "topkids": choices, "expertids": choices, "selectedexperts": choices,
	"routedexperts":       {routedFormat, Axes{"tokens", "layers", "topk"}, 3, false},
	"logicalcount":        {countsFormat, Axes{"steps", "layers", "experts"}, 2, false},
	"logicalexpertcounts": {loadFormat, Axes{"layers", "experts"}, 2, false},
	"expertload":          {loadFormat, Axes{"layers", "copies"}, 2, false},
	"windowexpertload":    {loadFormat, Axes{"layers", "copies"}, 2, true},
	"globalphysicalcount": {passFormat, Axes{"layers", "copies"}, 2, false},
	"rawdata":             {format: calibrationFormat},
}

// context is what an object, or one around it, says of the counts in it.
type context struct {
	numbers      [numbersOf]int64 // −1 where nothing says
	phase, model Phase            // a model or a data set is no phase
	copies       [][]int64        // the expert of each physical copy, by layer
	shape        []int64          // of base64 that is no .npy
	calibration  []calibration
	depth        int  // in how many lists and objects it stands
	counted      bool // it stands in an object of counts, whose keys are numbers of layers and experts
}

// nothing is the context of what nothing is said of.
func nothing() (of context) {
	for i := range of.numbers {
		of.numbers[i] = -1
	}
	return of
}

// maxDepth is more than any document has; every level is read once more.
const maxDepth = 32

// readObjects reads the counts of objects wherever they stand in a document. One that holds none is about
// those after it.
func readObjects(d *document, c *collector) error {
	n, of := 0, nothing()
	for v, err := range d.values() {
		if n++; err == nil {
			err = c.walk(v, &of)
		}
		if err != nil && n > 1 {
			return fmt.Errorf("record %d: %w", n, err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// walk reads what stands in a value; around is what is known outside, and learns what an object without counts says.
func (c *collector) walk(v value, around *context) error {
	of := *around
	if of.depth++; of.depth > maxDepth {
		return fmt.Errorf("want at most %d lists and objects within one another", maxDepth)
	}
	about := of.depth == 1 // of the document, with nothing below
	of.numbers[isCount] = -1
	parts, err := v.parts()
	if err != nil {
		return err
	}
	for _, part := range parts {
		if err := c.describe(&of, part.name, part.value); err != nil {
			return named(part.name, err)
		}
		about = about && !part.isObject() && !part.isList()
	}
	if of.numbers[isCount] != -1 && (of.numbers[isExpert] != -1 || of.numbers[isRank] >= 0 && of.numbers[isLayer] >= 0) {
		return c.cell(of)
	}
	for _, part := range parts {
		if err := c.part(part.name, part.value, of); err != nil {
			return named(part.name, err)
		}
	}
	if about {
		*around = of
		around.depth = 0
	}
	return nil
}

// named says at which key an error is.
func named(key string, err error) error {
	if key == "" {
		return err
	}
	return fmt.Errorf("%s: %w", key, err)
}

var (
	layerKey  = regexp.MustCompile(`^(?:.*\.)?layers?[._-]?(\d{1,5})(?:\..*)?$`) // of all that is below it
	numberKey = regexp.MustCompile(`^\d{1,5}$`)
)

// part reads one part of an object or a list.
func (c *collector) part(key string, v value, of context) error {
	p, isPayload := payloads[c.plain(key)]
	counts := isPayload && p.format == layerFormat
	n, _ := strconv.ParseInt(key, 10, 64)
	isNumber := numberKey.MatchString(key) && (of.counted || of.depth == 1 && v.isNumbers())
	m := layerKey.FindStringSubmatch(key)
	switch {
	case isPayload && (!counts || v.isNumbers()):
		return c.payload(p, v, of)
	case isNumber && of.numbers[isLayer] >= 0 && !v.isObject() && !v.isList():
		var ok bool
		of.numbers[isExpert] = n
		if of.numbers[isCount], ok = v.whole(); !ok {
			return fmt.Errorf("want a count, have %.40s", v.json)
		}
		return c.cell(of)
	case m != nil:
		of.numbers[isLayer], _ = strconv.ParseInt(m[1], 10, 64) // five digits at most
	case isNumber:
		of.numbers[isLayer] = n
	}
	of.phase = cmp.Or(phases[key], of.phase) // {"prefill": {…}, "decode": {…}}
	byLayer := m != nil || isNumber
	if of.counted = of.counted || counts || byLayer || key == "layers"; !byLayer || !v.isNumbers() {
		return c.walk(v, &of)
	}
	if a, err := v.array(); err == nil && isNumber && of.depth == 1 && isMap(a) {
		return errPlacement
	}
	return c.payload(layerCounts, v, of)
}

// describe reads what one field of an object says of the counts beside it and below.
func (c *collector) describe(of *context, key string, v value) (err error) {
	name := c.plain(key)
	if at, ok := names[name]; ok {
		return of.number(at, v)
	}
	switch name {
	case "phase":
		of.phase, err = phaseOf(v.word()) // a number means something else
	case "model", "modelname":
		of.model = Phase(v.word())
	case "dataset":
		of.model = Phase(strings.Trim(string(of.model)+", "+v.word(), ", "))
	case "usage":
		err = c.describe(of, "prompt_tokens", v.part("prompt_tokens"))
	case "prompttokenids", "shape":
		if a, failed := v.array(); failed == nil && name == "shape" {
			of.shape = a.Values
		} else if failed == nil {
			of.numbers[isPrompt] = int64(len(a.Values))
		}
	case "physicaltologicalmap", "lastphysicaltologicalmap", "p2lmap":
		of.copies, err = v.matrix()
	case "metadata":
		of.calibration = calibrations(v)
	}
	return err
}

// number takes the number of a name from a cell, or from a field that holds one.
func (of *context) number(at int, v value) error {
	n, ok := v.whole()
	if v.cell != "" && (!ok || n < 0) {
		return fmt.Errorf("want a whole number from 0 on, have %q", v.cell)
	}
	if ok && n < 0 && (at == isCount || at == isExpert) {
		n = wrong
	}
	if ok {
		of.numbers[at] = n
	}
	return nil
}

// wrong is a number below 0 that counts, or names what is counted: it is refused where the other stands beside it.
const wrong = -2

// plain is plain of a key, which recurs.
func (c *collector) plain(key string) string {
	name, ok := c.keys[key]
	if !ok {
		if name = plain(key); len(c.keys) < maxParts {
			c.keys[key] = name
		}
	}
	return name
}

// cell adds the slots of one expert or rank.
func (c *collector) cell(of context) error {
	c.preset(layerFormat)
	c.atLeast, c.stepped = true, c.stepped || of.numbers[isStep] >= 0
	key, err := of.key()
	level, at, most := router.LevelExpert, of.numbers[isExpert], int64(maxExperts)
	if at == -1 {
		level, at, most = router.LevelRank, of.numbers[isRank], maxRanks
	}
	if err == nil && (at < 0 || at >= most) {
		err = fmt.Errorf("want a number of the %s from 0 to %d, have %d", level, most-1, at)
	}
	if err != nil {
		return err
	}
	return c.add(c.at(key), level, int(at), []int64{of.numbers[isCount]}, !c.sums)
}

// preset is the format, where the document has none of its own.
func (c *collector) preset(format string) {
	if !c.lined {
		c.Format = format
	}
}

// payload adds what stands under the key of a payload.
func (c *collector) payload(p payload, v value, of context) error {
	if p.format == countsFormat && v.item != nil {
		p.format = statFormat
	}
	c.preset(p.format)
	switch {
	case v.none():
		return nil
	case p.axes == nil:
		return c.calibrated(v, of)
	}
	layered := of.numbers[isLayer] >= 0
	if p.axes.areChoices() {
		if of.numbers[isStep] = -1; p.least == 1 && !layered { // about the model
			return nil
		}
	} else if p.format == loadFormat && of.copies == nil && of.numbers[isRanks] < 0 { // somebody's own
		p = layerCounts
	}
	a, err := routes(v, &of)
	n := len(a.Shape)
	axes := p.axes[max(0, len(p.axes)-n):]
	if c.axes != nil {
		axes = c.axes
	}
	switch {
	case err != nil:
		return err
	case c.axes == nil && (n < p.least || n > len(p.axes) || n == 1 && !layered && p.axes.has("layers")):
		return fmt.Errorf("want %s, or what is of the layer named beside it, have %v; --axes names other dimensions",
			strings.Join(p.axes, " × "), a.Shape)
	case p.axes.has("copies"):
		c.sources, c.windows = max(1, c.sources), c.windows || p.window
	default:
		for layer, row := range of.copies {
			c.placed[layer] = row
		}
	}
	if n := of.numbers[isTopK]; n > 0 {
		c.TopK = int(min(n, maxTopK))
	}
	c.known = max(c.known, of.numbers[isKnown])
	return cmp.Or(c.onRanks(of.numbers[isRanks]), c.array(a, axes, of))
}

// onRanks takes the ranks that an object names as the ranks of the record.
func (c *collector) onRanks(ranks int64) error {
	if c.Ranks == 0 {
		c.Ranks = int(max(0, min(ranks, maxRanks+1)))
	}
	if ranks > 0 && ranks != int64(c.Ranks) && c.Ranks <= maxRanks {
		return fmt.Errorf("want steps on one number of ranks, have %d and %d", c.Ranks, ranks)
	}
	return bounded(0, c.Ranks)
}

// forwardModes are SGLang's, in dumps per token. An idle rank (4) has no tokens.
var forwardModes = map[int64]Phase{1: Prefill, 2: Decode, 3: Mixed}
