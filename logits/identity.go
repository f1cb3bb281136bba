package logits

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/router"
)

// schema names the format of an entry. It changes when a reader of the old one
// would misunderstand the new one.
const schema = "moebalance.logits/2"

// The metadata keys that say what an entry is. All of them, and nothing else,
// make its file name.
const (
	keySchema  = "schema"
	keyModel   = "model"
	keyMethod  = "method"
	keyExperts = "experts"
	keyTopK    = "top_k"
	keyGroups  = "groups"
	keyTopKG   = "top_k_groups"
	keyScale   = "scale"
	keyBias    = "bias_sha256" // of the little-endian float32 values, or "none"
	keyLayout  = "layout"      // "contiguous", or JSON: per rank the experts it holds
	keyRanks   = "ranks"
	keyMode    = "mode"
	keyRank    = "rank"
	keyTokens  = "tokens_per_rank" // "any" in a periodic entry, which alone has the next two
	keyRows    = "rows"            // of its table
	keyPeriod  = "period"          // steps after which it is level; 0 where none is known
	keyLayer   = "layer"
	keyPlanner = "planner" // the plan's name as it was asked for
	keyPlan    = "plan"    // the algorithm that served it, with its version
	keySeed    = "seed"    // of the plan, where it is random
	keyDType   = "dtype"
	keyHigh    = "high" // logit of a chosen expert
	keyLow     = "low"  // logit of any other
)

// The metadata keys that say what was found while writing.
const (
	keyProjected = "projected_rows"
	keyTolerated = "bias_spread_survived"
	keyChecksum  = "checksum" // CRC-32C of all tensor bytes in file order
)

const (
	noBias     = "none"
	contiguous = "contiguous"
	suffix     = ".safetensors"
)

// identify is the part of an entry's metadata that says what it is. The caller
// owns the map.
func (s Spec) identify(plan string, rank int, x extent) map[string]string {
	shape, v := s.Gate.Shape, logitsOf(s.Gate)
	id := map[string]string{
		keySchema: schema,
		keyModel:  s.Model, keyMethod: string(s.Gate.Method),
		keyExperts: strconv.Itoa(shape.Experts), keyTopK: strconv.Itoa(shape.TopK),
		keyGroups: strconv.Itoa(shape.Groups), keyTopKG: strconv.Itoa(shape.TopKGroups),
		keyScale: float(s.Gate.Scale), keyBias: s.text.bias,
		keyLayout: s.text.layout, keyRanks: strconv.Itoa(s.Layout.Ranks()), keyMode: string(s.Mode),
		keyRank: strconv.Itoa(rank), keyLayer: strconv.Itoa(s.Layer), keyPlanner: s.Plan, keyPlan: plan,
		keySeed:  strconv.FormatUint(s.Seed, 10),
		keyDType: string(s.DType),
		keyHigh:  float(v.high), keyLow: float(v.low),
	}
	x.add(id)
	return id
}

// identityTexts are the parts of an identity that cost time to spell out.
type identityTexts struct{ bias, layout string }

func float(x float32) string { return strconv.FormatFloat(float64(x), 'g', -1, 32) }

// biasHash is the SHA-256 of the bias as little-endian float32 values.
func biasHash(bias []float32) string {
	if bias == nil {
		return noBias
	}
	sum := sha256.Sum256(biasBytes(bias))
	return hex.EncodeToString(sum[:])
}

func biasBytes(bias []float32) []byte {
	b := make([]byte, 0, 4*len(bias))
	for _, x := range bias {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// layoutText names a contiguous layout and spells out any other.
func layoutText(l router.Layout) string {
	if isContiguous(l) {
		return contiguous
	}
	held := make([][]int32, l.Ranks())
	for r := range held {
		held[r] = l.Held(r)
	}
	text, err := json.Marshal(held)
	if err != nil {
		panic(err) // numbers always marshal
	}
	return string(text)
}

// isContiguous reports whether a layout is the one router.Contiguous makes.
func isContiguous(l router.Layout) bool {
	c, err := router.Contiguous(l.Experts(), l.Ranks())
	for r := 0; err == nil && r < l.Ranks(); r++ {
		if !slices.Equal(l.Held(r), c.Held(r)) {
			return false
		}
	}
	return err == nil
}

// entryName matches what fileName gives.
var entryName = regexp.MustCompile(`_r\d+_t[^_]+_[0-9a-f]{32}\` + suffix + `$`)

// IsCache reports a folder that holds an entry.
func IsCache(dir string) bool {
	files, _ := os.ReadDir(dir) // what cannot be listed is none
	return slices.ContainsFunc(files, func(e os.DirEntry) bool { return entryName.MatchString(e.Name()) })
}

// fileName is the file name of an entry: a prefix for people, and 128 bits of the
// hash of its whole identity.
func fileName(id map[string]string) string {
	h := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(id)) {
		fmt.Fprintf(h, "%q=%q\n", key, id[key])
	}
	parts := []string{
		slug(id[keyModel]), "e" + id[keyExperts], "k" + id[keyTopK], id[keyMode] + id[keyRanks], slug(id[keyPlanner]),
		id[keyDType], "r" + id[keyRank], "t" + id[keyTokens], hex.EncodeToString(h.Sum(nil)[:16]),
	}
	return strings.Join(parts, "_") + suffix
}

// slug keeps a name's letters, digits, dots and dashes, at most 48 of them.
func slug(name string) string {
	s := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-':
			return r
		}
		return '-'
	}, name)
	return strings.TrimLeft(s[:min(len(s), 48)], ".")
}
