package counts

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"

	"github.com/moebalance/moebalance/compare/counts/tensor"
	"github.com/moebalance/moebalance/router"
)

// payloads are the keys of objects under which counts and choices stand, and what reads them. What the object says
// beside them, and those around it, tells their step, layer and kind.
var payloads = map[string]func(*objects, value, context) error{
	"logical_count": (*objects).logical,
	"expert_counts": (*objects).perExpert, "tokens_per_expert": (*objects).perExpert,
	"expert_load": (*objects).perCopy, "global_physical_count": (*objects).perCopy,
	"routed_experts": (*objects).request,
	"topk_ids":       (*objects).token, "expert_ids": (*objects).token, "selected_experts": (*objects).token,
	"raw_data": (*objects).calibrated,
}

// context is what an object, or one around it, says of the counts in it.
type context struct {
	step, layer, ranks int64 // −1 and 0 where nothing says
	mode               int64 // of the forward pass
	phase, model       Phase
	copies             [][]int64 // the expert of each physical copy, by layer
	start, prompt      int64     // tokens of the request before the first one here; tokens of its prompt, 0 for unknown
	shape              []int64   // of base64 that is no .npy
	calibration        []calibration
	depth              int // in how many lists and objects it stands
}

// maxDepth is more than any document has; every level is read once more.
const maxDepth = 32

// objects reads the counts of objects wherever they stand in a document.
type objects struct {
	*collector
	source  int // of several, which are all recorded in one place each
	known   int64
	models  map[Phase]bool
	padding map[stepKey]int // choices that name no expert
	choices bool            // of tokens, not counts, were read
}

func newObjects(c *collector) *objects {
	return &objects{collector: c, models: map[Phase]bool{}, padding: map[stepKey]int{}}
}

// readObjects reads a document whose objects hold counts. One that holds none is about those after it.
func readObjects(d *document, c *collector) error {
	w := newObjects(c)
	if err := w.all(d); err != nil {
		return err
	}
	return w.end(1)
}

// all reads the values of a document.
func (w *objects) all(d *document) error {
	n, of := 0, context{step: -1, layer: -1}
	for v, err := range d.values() {
		if n++; err == nil {
			err = w.walk(v, &of)
		}
		if err != nil && len(d.first) > 1 {
			return fmt.Errorf("record %d: %w", n, err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// walk reads what stands in a value; around is what is known outside, and learns what an object without counts says.
func (w *objects) walk(v value, around *context) error {
	of := *around
	if of.depth++; of.depth > maxDepth {
		return fmt.Errorf("want at most %d lists and objects within one another", maxDepth)
	}
	for part := range v.items() {
		if err := w.below(field{value: part}, of); err != nil {
			return err
		}
	}
	keys := v.keys()
	err := keys.checked()
	for _, f := range keys {
		if err == nil {
			if err = w.describe(&of, f); err != nil {
				err = fmt.Errorf("%s: %w", f.key, err)
			}
		}
	}
	whole := around.depth == 0 // a value of the document
	for _, f := range keys {
		if err != nil {
			return err
		}
		if read := payloads[f.key]; read != nil && !f.isNull() {
			err, whole = read(w, f.value, of), false
		} else if f.isNested() {
			err, whole = w.below(f, of), false
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", f.key, err)
		}
	}
	if whole {
		of.depth = 0
		*around = of
	}
	return err
}

// below reads what stands in a list or a field of an object.
func (w *objects) below(f field, of context) error {
	if m := layerKey.FindStringSubmatch(f.key); m != nil {
		of.layer, _ = strconv.ParseInt(m[1], 10, 64) // five digits at most
	}
	return w.walk(f.value, &of)
}

// layerKey is a key that names the layer of all that is below it.
var layerKey = regexp.MustCompile(`^layers?[._-]?(\d{1,5})$`)

// describe reads what one field of an object says of the counts beside it and below.
func (w *objects) describe(of *context, f field) (err error) {
	into := (*int64)(nil)
	switch f.key {
	case "layer", "layer_id", "layer_idx":
		into = &of.layer
	case "step", "iteration", "forward_pass_id":
		into = &of.step
	case "num_experts":
		into = &w.known
	case "num_ranks", "world_size":
		into = &of.ranks
	case "routed_experts_start_len":
		into = &of.start
	case "prompt_tokens":
		into = &of.prompt
	case "forward_mode":
		into = &of.mode
	case "usage":
		if n, ok := f.keys().get("prompt_tokens").whole(); ok {
			of.prompt = n
		}
	case "prompt_token_ids":
		if a, failed := f.array(); failed == nil {
			of.prompt = int64(len(a.Values))
		}
	case "phase":
		of.phase, err = phaseOf(f.word()) // a number means something else
	case "model":
		of.model = Phase(f.word())
	case "shape":
		if a, failed := f.array(); failed == nil {
			of.shape = a.Values
		}
	case "physical_to_logical_map", "last_physical_to_logical_map", "p2l_map":
		var a tensor.Array
		if a, err = f.matrix(); err == nil {
			of.copies = a.Rows()
		}
	case "metadata":
		of.calibration = calibrations(f.value)
	}
	if into != nil {
		if n, ok := f.whole(); ok {
			*into = n
		}
	}
	return err
}

// key is the step that a context tells; kinds of work are judged apart.
func (w *objects) key(of context) (key stepKey, err error) {
	if of.layer >= maxLayers || of.layer < -1 || of.step < -1 {
		return key, fmt.Errorf("want a layer below %d and a step, have %d and %d", maxLayers, of.layer, of.step)
	}
	key = stepKey{iteration: max(0, of.step), layer: int(max(0, of.layer)), phase: of.phase}
	if key.phase == "" {
		key.phase = of.model
		w.models[of.model] = true
	}
	return key, nil
}

// logical reads slots per expert as SGLang saves them, and takes them as --init-expert-location: steps × layers ×
// experts, or the sum over the steps, summed over the ranks already.
func (w *objects) logical(v value, of context) error {
	a, err := v.array()
	if err != nil {
		return err
	}
	if len(w.cells) > 0 {
		return fmt.Errorf("want one list of counts, have several values")
	}
	for layer, row := range of.copies {
		w.keepMap(layer, row)
	}
	return w.array(a, Axes{"steps", "layers", "experts"}[max(0, 3-len(a.Shape)):])
}

// perExpert reads slots per expert of one layer, which is named beside it, or of all.
func (w *objects) perExpert(v value, of context) error {
	a, err := v.array()
	key, also := w.key(of)
	switch err = cmp.Or(err, also); {
	case err != nil:
		return err
	case len(a.Shape) < 1 || len(a.Shape) > 2 || len(a.Shape) == 1 && of.layer < 0:
		return fmt.Errorf("want the experts of the layer named beside them, or layers × experts, have %v", a.Shape)
	case len(a.Shape) == 1:
		a.Shape = []int64{1, a.Shape[0]}
	}
	if a.Shape[0] > maxLayers || a.Shape[1] > maxExperts {
		return fmt.Errorf("want layers and experts such as models have, have %v", a.Shape)
	}
	w.Window = of.step < 0
	return w.rows(key, a.Rows())
}

// forwardModes are SGLang's, in dumps per token. An idle rank (4) has no tokens.
var forwardModes = map[int64]Phase{1: Prefill, 2: Decode, 3: Mixed}

// perCopy reads the slots of each physical copy of an expert, layers × copies, as one of several sources recorded
// them. A step in which they worked in unlike phases is mixed.
func (w *objects) perCopy(v value, of context) error {
	load, err := v.matrix()
	key, also := w.key(of)
	if w.Ranks == 0 {
		w.Ranks = int(of.ranks)
	}
	switch err = cmp.Or(err, also, bounded(0, w.Ranks)); {
	case err != nil:
		return err
	case of.ranks != 0 && of.ranks != int64(w.Ranks):
		return fmt.Errorf("want steps on one number of ranks, have %d and %d", w.Ranks, of.ranks)
	case int(load.Shape[0]) != len(of.copies):
		return fmt.Errorf("%v: counts of %v, but a map of %d layers", key, load.Shape, len(of.copies))
	}
	phase := forwardModes[of.mode]
	for layer := range int(load.Shape[0]) {
		key.layer = layer
		if err := w.copies(key, w.source, load.Row(layer).Values, of.copies[layer]); err != nil {
			return err
		}
		into := w.at(key)
		if into.Phase != "" && phase != "" && into.Phase != phase {
			phase = Mixed
		}
		into.Phase = cmp.Or(phase, into.Phase)
	}
	return nil
}

// end is said when so many sources are read.
func (w *objects) end(sources int) error {
	copied := false
	for _, s := range w.cells { // one model tells nothing apart
		if len(w.models) == 1 && w.models[s.Phase] {
			s.Phase = ""
		}
		copied = copied || s.sources != 0
	}
	switch {
	case copied: // every source records them
		return w.complete(sources)
	case w.choices:
		return w.named()
	}
	return nil
}

// named checks what tokens chose: that it is experts, and how many there may be.
func (w *objects) named() error {
	padded, seen := 0, 0
	for key, s := range w.cells {
		if seen = max(seen, len(s.Load.PerExpert)); len(s.Load.PerExpert) > 0 { // else a dense layer
			padded += w.padding[key]
		}
	}
	switch w.atLeast = w.known == 0; {
	case len(w.padding) > 0 && seen == 0:
		return fmt.Errorf("want expert ids, have only 0 or −1: the engine recorded no routing")
	case w.known > 0 && int64(seen) > w.known:
		return fmt.Errorf("want experts below num_experts, %d, have %d", w.known, seen-1)
	case w.known > maxExperts:
		return bounded(maxExperts+1, 0)
	}
	w.Experts = int(w.known)
	if padded > 0 {
		w.warn("padded_tokens", "choices", padded)
	}
	return nil
}

// choose adds what one token chose at one layer.
func (w *objects) choose(key stepKey, ids []int64) error {
	if key.layer >= maxLayers || len(ids) < 1 || len(ids) > maxTopK {
		return fmt.Errorf("want 1 to %d experts of a layer below %d, have %d of layer %d", maxTopK, maxLayers, len(ids),
			key.layer)
	}
	if w.TopK = cmp.Or(w.TopK, len(ids)); len(ids) != w.TopK {
		return fmt.Errorf("layer %d: want %d experts a token, have %d", key.layer, w.TopK, len(ids))
	}
	into := w.at(key)
	if w.choices = true; into.Load.PerExpert == nil {
		into.Load.PerExpert = []int64{} // a dense layer has counts too, of 0
	}
	if isPadding(ids) {
		w.padding[key]++
		return nil
	}
	for _, id := range ids {
		if id < 0 || id >= maxExperts {
			return fmt.Errorf("layer %d: want an expert from 0 to %d, have %d", key.layer, maxExperts-1, id)
		}
		if err := w.add(into, router.LevelExpert, int(id), 1, false); err != nil {
			return err
		}
	}
	return nil
}

// maxTopK is far above any model's.
const maxTopK = 64

// isPadding reports a row that engines leave at 0 or −1, for a dense layer or a padded token.
func isPadding(ids []int64) bool {
	for _, id := range ids {
		if id != ids[0] || id > 0 {
			return false
		}
	}
	return len(ids) > 1 || ids[0] < 0
}
