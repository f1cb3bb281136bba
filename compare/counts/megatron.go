package counts

import (
	"archive/zip"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/counts/tensor"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

const mcoreVersion = "mcore_ep_load_dump_v1"

var mcoreFile = regexp.MustCompile(`^mcore_ep_loads_.*\.npz$`)

// mcoreDump is one rank's archive: its tokens' slots [layers, forwards, experts]. Of a
// layer that ran fewer forwards than others, the rest is memory that nothing was written
// to. Source: ExpertLoadRecorder in forks of Megatron-LM.
type mcoreDump struct {
	loads        tensor.Array
	layerNumbers []int64
	forwards     []int64 // by layer; nil for all
	group        []int64
	rank, ranks  int
}

// readMcore reads the archives of all ranks of one EP group, or one, which is the
// whole load only at EP size 1.
func readMcore(s *source, r *Record) error {
	if s.members != nil {
		d, err := openMcore(s.members)
		if err == nil && d.ranks != 1 {
			err = fmt.Errorf("this is rank %d of %d, and the load is the sum over the ranks: give the folder that holds all of them", d.rank, d.ranks)
		}
		if err != nil {
			return err
		}
		return r.addMcore([]mcoreDump{d})
	}
	files := s.named(mcoreFile)
	dumps := make([]mcoreDump, len(files))
	for _, path := range files {
		var d mcoreDump
		members, err := openZip(path)
		if err == nil {
			d, err = openMcore(members)
		}
		if err == nil && (d.ranks != len(files) || d.rank < 0 || d.rank >= d.ranks || dumps[d.rank].ranks > 0) {
			err = fmt.Errorf("this is rank %d of %d: want one file of each rank of one EP group, have %s", d.rank, d.ranks, quantity.Count(len(files), "file"))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(path), err)
		}
		dumps[d.rank] = d
	}
	return r.addMcore(dumps)
}

func openMcore(members []*zip.File) (mcoreDump, error) {
	var d mcoreDump
	arrays := map[string]tensor.NumPy{}
	var u tensor.Unpacker
	for _, m := range members {
		name, ok := strings.CutSuffix(m.Name, ".npy")
		if !ok {
			continue
		}
		b, err := u.Read(m)
		if err != nil {
			return d, err
		}
		if arrays[name], err = tensor.ParseNumPy(b); err != nil {
			return d, fmt.Errorf("%s: %w", m.Name, err)
		}
	}
	if v := arrays["dump_version"].Text; v != mcoreVersion {
		return d, fmt.Errorf("want dump_version %q, have %q", mcoreVersion, v)
	}
	rank, ranks := arrays["ep_rank"].Values, arrays["ep_size"].Values
	if len(rank) != 1 || len(ranks) != 1 || ranks[0] < 1 || ranks[0] > maxRanks {
		return d, fmt.Errorf("want one ep_rank and one ep_size up to %d", maxRanks)
	}
	d.rank, d.ranks = int(rank[0]), int(ranks[0])
	d.loads, d.group, d.layerNumbers = arrays["loads"].Array, arrays["ep_group_ranks"].Values, arrays["layer_numbers"].Values
	s := d.loads.Shape
	if len(s) != 3 || s[0] < 1 || s[0] > maxLayers || s[1] < 1 || s[2] < 1 || s[2] > maxExperts || d.loads.Values == nil {
		return d, fmt.Errorf("loads: want counts of [layers, forwards, experts], have %v", s)
	}
	d.forwards = arrays["forward_counts"].Values
	tooMany := func(n int64) bool { return n < 0 || n > s[1] }
	if d.forwards != nil && (int64(len(d.forwards)) != s[0] || slices.ContainsFunc(d.forwards, tooMany)) {
		return d, fmt.Errorf("forward_counts: want %d numbers up to %d, have %v", s[0], s[1], d.forwards)
	}
	if d.layerNumbers != nil && int64(len(d.layerNumbers)) != s[0] {
		return d, fmt.Errorf("%d layer_numbers for loads of %d layers", len(d.layerNumbers), s[0])
	}
	return d, nil
}

// addMcore adds the sum over the ranks.
func (r *Record) addMcore(dumps []mcoreDump) error {
	first := dumps[0]
	layers, forwards, experts := int(first.loads.Shape[0]), int(first.loads.Shape[1]), int(first.loads.Shape[2])
	r.Experts, r.Ranks = experts, len(dumps)
	for rank, d := range dumps {
		if !slices.Equal(d.loads.Shape, first.loads.Shape) || !slices.Equal(d.layerNumbers, first.layerNumbers) || !slices.Equal(d.group, first.group) {
			return fmt.Errorf("rank %d recorded other layers, forwards, experts or another EP group than rank 0", rank)
		}
	}
	for i := range layers {
		layer := i
		if first.layerNumbers != nil {
			if n := first.layerNumbers[i]; n < 0 || n > maxLayers {
				return fmt.Errorf("layer number %d", n)
			}
			layer = int(first.layerNumbers[i])
		}
		n := forwards
		for _, d := range dumps {
			if d.forwards != nil {
				n = min(n, int(d.forwards[i]))
			}
		}
		for forward := range n {
			step := Step{Iteration: int64(forward), Layer: layer, Load: router.NewLoad(experts)}
			for rank, d := range dumps {
				counts := d.loads.Row(i).Row(forward).Values
				if err := checkCounts(counts); err != nil {
					return fmt.Errorf("rank %d, layer %d, forward %d: element %w", rank, layer, forward, err)
				}
				step.send(router.Load{PerExpert: counts})
			}
			r.held = append(r.held, step)
		}
	}
	return nil
}
