package diff

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/compare/nsys/kernel"
	"github.com/moebalance/moebalance/router/quantity"
)

// KernelFamily is a group of kernels that only one arm launched. Libraries
// choose a kernel by problem size, so an arm with uneven loads shows variants
// that the other does not; a whole family in one arm only means that the arms
// ran different code.
type KernelFamily struct {
	Arm       gain.Arm `json:"arm"`
	Family    string   `json:"family"` // the kernel's name up to tile sizes and arguments
	Elsewhere bool     `json:"family_in_other_arm"`
	Names     []string `json:"names"` // the variants, as recorded
	Instances int64    `json:"instances"`
	TotalNS   int64    `json:"total_ns"`
}

// kernelFamilies lists them by arm, the most time first.
func kernelFamilies(normal, perfect *nsys.Trace) []KernelFamily {
	rows := append(onlyIn(gain.Normal, normal, perfect), onlyIn(gain.Perfect, perfect, normal)...)
	return append([]KernelFamily{}, rows...)
}

func onlyIn(arm gain.Arm, own, other *nsys.Trace) []KernelFamily {
	names, families := map[string]bool{}, map[string]bool{}
	for _, k := range other.Kernels {
		names[kernel.NormalName(k.Name)] = true
		families[familyName(k.Name)] = true
	}
	byFamily := map[string]*KernelFamily{}
	for _, k := range own.Kernels {
		if names[kernel.NormalName(k.Name)] {
			continue
		}
		name := familyName(k.Name)
		f := byFamily[name]
		if f == nil {
			f = &KernelFamily{Arm: arm, Family: name, Elsewhere: families[name]}
			byFamily[name] = f
		}
		f.Names = append(f.Names, k.Name)
		f.Instances += k.Instances
		f.TotalNS += k.TotalNS
	}
	var rows []KernelFamily
	for _, name := range slices.Sorted(maps.Keys(byFamily)) {
		f := byFamily[name]
		slices.Sort(f.Names)
		rows = append(rows, *f)
	}
	slices.SortStableFunc(rows, func(a, b KernelFamily) int { return cmp.Compare(b.TotalNS, a.TotalNS) })
	return rows
}

// otherMargin is the share of an arm's kernel time in families that the other
// arm never launched from which a warning is due. Sorting and other small kernels
// change with the load; a tenth of the time does not.
const otherMargin = 0.1

// warnOtherKernels warns of an arm that ran kernel families of its own.
func (c *Comparison) warnOtherKernels(sides [2]*nsys.Trace) {
	for i, arm := range gain.Arms {
		var alone, total int64
		for _, k := range sides[i].Kernels {
			total += k.TotalNS
		}
		for _, f := range c.Kernels {
			if f.Arm == arm && !f.Elsewhere {
				alone += f.TotalNS
			}
		}
		if share := float64(alone) / float64(total); share > otherMargin {
			c.warn("other_kernels", string(arm), quantity.Percent(share)+" of the kernel time is in kernel families that the other arm did not launch: the arms ran different code")
		}
	}
}

var tiles = regexp.MustCompile(`\d+x\d+`)

// familyName is the name up to its tile sizes, template or call arguments.
func familyName(name string) string {
	name = kernel.NormalName(name)
	if i := strings.IndexAny(name, "<("); i > 0 {
		name = name[:i]
	}
	if at := tiles.FindStringIndex(name); at != nil && at[0] > 0 {
		name = strings.TrimRight(name[:at[0]], "_")
	}
	return name
}
