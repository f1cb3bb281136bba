package counts

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/compare/counts/tensor"
	"github.com/moebalance/moebalance/router"
)

// payload is a key of objects under which counts or choices stand: the axes of its array, which may
// lack the first of them, and how the value becomes an array where it is none.
type payload struct {
	format string
	axes   Axes
	least  int // dimensions
	array  func(value, *context) (tensor.Array, error)
	window bool // a step is the sum of many
}

const (
	routedFormat = "routed experts per token"
	countsFormat = "SGLang logical counts"
	statFormat   = "SGLang expert distribution (stat)"
	passFormat   = "SGLang expert distribution (per pass)"
	layerFormat  = "counts by layer"
	loadFormat   = "vLLM EPLB load statistics"
)

// payloads by key. What an object says beside them, and those around it, tells their step, layer and kind.
var payloads = map[string]payload{
	"logical_count":         {format: countsFormat, axes: Axes{"steps", "layers", "experts"}, least: 2, array: array},
	"expert_counts":         {format: layerFormat, axes: Axes{"layers", "experts"}, least: 1, array: array},
	"tokens_per_expert":     {format: layerFormat, axes: Axes{"layers", "experts"}, least: 1, array: array},
	"counts":                {format: layerFormat, axes: Axes{"layers", "experts"}, least: 1, array: array},
	"logical_expert_counts": {format: loadFormat, axes: Axes{"layers", "experts"}, least: 2, array: array},
	"expert_load":           {format: loadFormat, axes: Axes{"layers", "copies"}, least: 2, array: array},
	"window_expert_load":    {format: loadFormat, axes: Axes{"layers", "copies"}, least: 2, array: array, window: true},
	"global_physical_count": {format: passFormat, axes: Axes{"layers", "copies"}, least: 2, array: array},
	"routed_experts":        {format: routedFormat, axes: Axes{"tokens", "layers", "topk"}, least: 3, array: routes},
	"topk_ids":              {format: routedFormat, axes: Axes{"topk"}, least: 1, array: array},
	"expert_ids":            {format: routedFormat, axes: Axes{"topk"}, least: 1, array: array},
	"selected_experts":      {format: routedFormat, axes: Axes{"topk"}, least: 1, array: array},
	"raw_data":              {format: "TensorRT-LLM calibration data"},
}

// array is an array as it stands.
func array(v value, _ *context) (tensor.Array, error) { return v.array() }

// context is what an object, or one around it, says of the counts in it.
type context struct {
	label
	expert      int64   // that one object counts, −1 for none
	slots       int64   // of the expert
	ranks       int64   // 0 where nothing says
	shape       []int64 // of base64 that is no .npy
	calibration []calibration
	depth       int // in how many lists and objects it stands
}

// maxDepth is more than any document has; every level is read once more.
const maxDepth = 32

// readObjects reads the counts of objects wherever they stand in a document. One that holds none is about
// those after it.
func readObjects(d *document, c *collector) error {
	n, of := 0, context{label: nothing()}
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
	of.expert, of.slots = -1, -1
	for key, part := range v.parts() {
		err := c.describe(&of, key, part)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		about = about && payloads[key].format == "" && !part.isNested()
	}
	if of.expert >= 0 && of.slots >= 0 && of.layer >= 0 {
		return c.cell(of)
	}
	for key, part := range v.parts() {
		var err error
		if p, ok := payloads[key]; ok {
			err = c.payload(p, part, of)
		} else if part.isNested() {
			below := of
			if m := layerKey.FindStringSubmatch(key); m != nil {
				below.layer, _ = strconv.ParseInt(m[1], 10, 64) // five digits at most
			}
			below.phase = cmp.Or(phases[key], below.phase) // {"prefill": {…}, "decode": {…}}
			if below.layer != of.layer && of.depth == 1 && part.holds("[") && !part.holdsParts("[{") {
				err = c.payload(payloads["counts"], part, below) // {"layer_0": [5, 7], …}
			} else {
				err = c.walk(part, &below)
			}
		}
		if err != nil && key != "" {
			return fmt.Errorf("%s: %w", key, err)
		} else if err != nil {
			return err
		}
	}
	if about {
		*around = of
		around.depth = 0
	}
	return nil
}

// layerKey is a key that names the layer of all that is below it.
var layerKey = regexp.MustCompile(`^layers?[._-]?(\d{1,5})$`)

// describe reads what one field of an object says of the counts beside it and below.
func (c *collector) describe(of *context, key string, v value) (err error) {
	into := (*int64)(nil)
	switch c.meaning(key) {
	case "layer":
		into = &of.layer
	case "expert":
		into = &of.expert
	case "count":
		into = &of.slots
	case "step":
		into = &of.step
	case "phase":
		of.phase, err = phaseOf(v.word()) // a number means something else
	case "model":
		of.model = Phase(v.word())
	case "num_experts":
		into = &c.known
	case "num_ranks", "world_size", "ep_size", "expert_parallel_size":
		into = &of.ranks
	case "experts_per_token":
		n, _ := v.whole()
		c.TopK = int(max(0, min(n, maxTopK)))
	case "routed_experts_start_len":
		into = &of.start
	case "prompt_tokens":
		into = &of.prompt
	case "forward_mode":
		n, _ := v.whole()
		of.mode = forwardModes[n]
	case "usage":
		for name, part := range v.parts() {
			if name == "prompt_tokens" {
				of.prompt, _ = part.whole()
			}
		}
	case "prompt_token_ids", "shape":
		a, failed := v.array()
		if key == "shape" && failed == nil {
			of.shape = a.Values
		} else if failed == nil {
			of.prompt = int64(len(a.Values))
		}
	case "physical_to_logical_map", "last_physical_to_logical_map", "p2l_map":
		of.copies, err = v.matrix()
	case "metadata":
		of.calibration = calibrations(v)
	}
	if into == nil {
		return err
	}
	if n, ok := v.whole(); ok {
		*into = n
	}
	return nil
}

// meaning is what a key says, in the words of meanings, or the key itself.
func (c *collector) meaning(key string) string {
	m, ok := c.keys[key]
	if !ok {
		m = cmp.Or(meanings[plain(key)], key)
		if len(c.keys) < maxKeys {
			c.keys[key] = m
		}
	}
	return m
}

// cell adds the slots of one expert, which an object names as the row of a table does.
func (c *collector) cell(of context) error {
	c.Format, c.atLeast = layerFormat, true
	key, err := of.key()
	if err == nil && of.expert >= maxExperts {
		err = bounded(maxExperts+1, 0)
	}
	if err != nil {
		return err
	}
	c.stepped = c.stepped || of.step >= 0
	return c.add(c.at(key), router.LevelExpert, int(of.expert), []int64{of.slots}, true)
}

// matrix reads numbers of [layers, copies].
func (v value) matrix() ([][]int64, error) {
	a, err := v.array()
	if err == nil && (len(a.Shape) != 2 || a.Shape[1] < 1 || a.Shape[0] > maxLayers || a.Shape[1] > maxExperts) {
		err = fmt.Errorf("want [layers, copies], have %v", a.Shape)
	}
	if err != nil {
		return nil, err
	}
	return slices.Collect(a.Rows()), nil
}

// payload adds what stands under the key of a payload.
func (c *collector) payload(p payload, v value, of context) error {
	if c.Format = p.format; c.Format == countsFormat && v.item != nil {
		c.Format = statFormat
	}
	switch {
	case v.none():
		return nil
	case p.array == nil:
		return c.calibrated(v, of)
	}
	choices, named := p.axes.areChoices(), of.layer >= 0
	if choices {
		if of.step = -1; p.least == 1 && !named { // about the model
			return nil
		}
	}
	a, err := p.array(v, &of)
	n := len(a.Shape)
	axes := p.axes[max(0, len(p.axes)-n):]
	if c.axes != nil {
		axes = c.axes
	}
	switch {
	case err != nil:
		return err
	case c.axes == nil && (n < p.least || n > len(p.axes) || n == 1 && !named):
		return fmt.Errorf("want %s, or what is of the layer named beside it, have %v; --axes names other dimensions",
			strings.Join(p.axes, " × "), a.Shape)
	case p.axes.has("copies"):
		c.sources, c.windows = max(1, c.sources), c.windows || p.window
	default:
		for layer, row := range of.copies {
			c.placed[layer] = row
		}
	}
	return cmp.Or(c.onRanks(of.ranks), c.array(a, axes, of.label))
}

// onRanks takes the ranks that an object names as those of the record; 0 names none.
func (c *collector) onRanks(ranks int64) error {
	if c.Ranks == 0 {
		c.Ranks = int(max(0, min(ranks, maxRanks+1)))
	}
	if ranks != 0 && ranks != int64(c.Ranks) && c.Ranks <= maxRanks {
		return fmt.Errorf("want steps on one number of ranks, have %d and %d", c.Ranks, ranks)
	}
	return bounded(0, c.Ranks)
}

// forwardModes are SGLang's, in dumps per token. An idle rank (4) has no tokens.
var forwardModes = map[int64]Phase{1: Prefill, 2: Decode, 3: Mixed}
