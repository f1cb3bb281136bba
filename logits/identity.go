package logits

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/moebalance/moebalance/router"
)

// schema names the format of an entry. It changes when a reader of the old one
// would misunderstand the new one.
const schema = "moebalance.logits/2"

// identity is the part of an entry's metadata that says what it is. All of it, and nothing
// else, makes the name of its file. In the file all values are texts.
type identity struct {
	Schema     string        `json:"schema"`
	Model      string        `json:"model"`
	Method     router.Method `json:"method"`
	Experts    int           `json:"experts,string"`
	TopK       int           `json:"top_k,string"`
	Groups     int           `json:"groups,string"`
	TopKGroups int           `json:"top_k_groups,string"`
	Scale      float32       `json:"scale,string"`
	Bias       string        `json:"bias_sha256"` // of the little-endian float32 values, or "none"
	Layout     string        `json:"layout"`      // "contiguous", or JSON: per rank the experts it holds
	Ranks      int           `json:"ranks,string"`
	Mode       router.Mode   `json:"mode"`
	Rank       int           `json:"rank,string"`
	Tokens     string        `json:"tokens_per_rank"`         // "any" in a periodic entry, which alone has the next two
	Rows       *int          `json:"rows,string,omitempty"`   // of its table
	Period     *int          `json:"period,string,omitempty"` // steps after which it is level; 0 where none is known
	Layer      int           `json:"layer,string"`
	Planner    string        `json:"planner"`     // the plan's name as it was asked for
	Plan       string        `json:"plan"`        // the algorithm that served it, with its version
	Seed       uint64        `json:"seed,string"` // of the plan, where it is random
	DType      DType         `json:"dtype"`
	High       float32       `json:"high,string"` // logit of a chosen expert
	Low        float32       `json:"low,string"`  // logit of any other
}

// metadata is all that the header of an entry says.
type metadata struct {
	identity
	Projected int    `json:"projected_rows,string"`
	Tolerated string `json:"bias_spread_survived"` // a number or "any"
	Checksum  string `json:"checksum"`             // CRC-32C of all tensor bytes in file order
}

// texts are the values of an identity or of metadata by their keys.
func texts(of any) (values map[string]string) {
	text, err := json.Marshal(of)
	if err == nil {
		err = json.Unmarshal(text, &values)
	}
	if err != nil {
		panic(err) // numbers are finite, and texts always marshal
	}
	return values
}

const (
	noBias     = "none"
	contiguous = "contiguous"
	suffix     = ".safetensors"
)

// identify says what the entry of a rank is.
func (s Spec) identify(plan string, rank int, x extent) identity {
	shape, v := s.Gate.Shape, logitsOf(s.Gate)
	id := identity{
		Schema: schema, Model: s.Model, Method: s.Gate.Method, Experts: shape.Experts, TopK: shape.TopK,
		Groups: shape.Groups, TopKGroups: shape.TopKGroups, Scale: s.Gate.Scale, Bias: s.text.bias,
		Layout: s.text.layout, Ranks: s.Layout.Ranks(), Mode: s.Mode, Rank: rank, Tokens: strconv.Itoa(x.tokens),
		Layer: s.Layer, Planner: s.Plan, Plan: plan, Seed: s.Seed, DType: s.DType, High: v.high, Low: v.low,
	}
	if x.tokens == AnyTokens {
		id.Tokens, id.Rows, id.Period = anyTokens, &x.rows, &x.period
	}
	return id
}

// identityTexts are the parts of an identity that cost time to spell out.
type identityTexts struct{ bias, layout string }

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
	files, _ := os.ReadDir(dir) // ignore unreadable directories
	return slices.ContainsFunc(files, func(e os.DirEntry) bool { return entryName.MatchString(e.Name()) })
}

// fileName is the file name of an entry: a prefix for people, and 128 bits of the
// hash of its whole identity.
func fileName(id identity) string {
	h, values := sha256.New(), texts(id)
	for _, key := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(h, "%q=%q\n", key, values[key])
	}
	return fmt.Sprintf("%s_e%d_k%d_%s%d_%s_%s_r%d_t%s_%x%s", slug(id.Model), id.Experts, id.TopK, id.Mode, id.Ranks,
		slug(id.Planner), id.DType, id.Rank, id.Tokens, h.Sum(nil)[:16], suffix)
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
