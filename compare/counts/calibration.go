package counts

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/moebalance/moebalance/router"
)

// calibrationRecord is one iteration of one rank: the shapes of the layers'
// [tokens, top-k] slot ids, and the ids of all layers one after another as
// base64 of zlib of little-endian int32. Source: TensorRT-LLM,
// tensorrt_llm/tools/layer_wise_benchmarks/calibrator.py.
type calibrationRecord struct {
	Iteration int64 `json:"iteration"`
	Metadata  []struct {
		Layer int      `json:"layer_idx"`
		Slots int      `json:"num_slots"`
		Shape [2]int64 `json:"token_selected_slots_shape"`
	} `json:"metadata"`
	Raw string `json:"raw_data"`
}

// readCalibration reads the ids that each rank's tokens chose. They are slots
// of a layer, which are its experts unless a load balancer made replicas.
func readCalibration(s *source, r *Record) error {
	var file struct {
		Ranks   int                   `json:"world_size"`
		Records [][]calibrationRecord `json:"all_ranks_records"`
	}
	if err := s.object(&file); err != nil {
		return err
	}
	if file.Ranks != len(file.Records) || bounded(0, file.Ranks) != nil {
		return fmt.Errorf("want records of %d ranks (world_size), at most %d, have %d", file.Ranks, maxRanks, len(file.Records))
	}
	r.Ranks = file.Ranks
	recorded := recorders{}
	for rank, records := range file.Records {
		for _, rec := range records {
			for _, m := range rec.Metadata {
				recorded.add(stepKey{iteration: rec.Iteration, layer: m.Layer}, rank)
			}
		}
	}
	r.warnAboutIncomplete(recorded)
	steps := stepSet{}
	for rank, records := range file.Records {
		for _, rec := range records {
			if err := r.addCalibration(steps, recorded, rec); err != nil {
				return fmt.Errorf("rank %d, iteration %d: %w", rank, rec.Iteration, err)
			}
		}
	}
	r.addSteps(steps)
	return nil
}

// addCalibration adds the layers of one record that every rank recorded.
func (r *Record) addCalibration(steps stepSet, recorded recorders, rec calibrationRecord) error {
	var want int64
	for _, m := range rec.Metadata {
		tokens, topK := m.Shape[0], m.Shape[1]
		if tokens < 0 || topK < 1 || topK > maxExperts || tokens > maxFile/4/topK {
			return fmt.Errorf("layer %d: impossible shape %v", m.Layer, m.Shape)
		}
		if r.Experts == 0 {
			r.Experts, r.TopK = m.Slots, int(topK)
		}
		if m.Slots != r.Experts || int(topK) != r.TopK || bounded(m.Slots, 0) != nil || m.Layer < 0 || m.Layer >= maxLayers {
			return fmt.Errorf("layer %d: %d slots and top-%d, want those of the first record, %d and %d", m.Layer, m.Slots, topK, r.Experts, r.TopK)
		}
		want += 4 * tokens * topK
	}
	raw, err := inflate(rec.Raw, want)
	if err != nil {
		return err
	}
	for _, m := range rec.Metadata {
		sent := router.NewLoad(r.Experts)
		for range m.Shape[0] * m.Shape[1] {
			id := int32(binary.LittleEndian.Uint32(raw))
			raw = raw[4:]
			if id < 0 || int(id) >= r.Experts {
				return fmt.Errorf("layer %d: slot %d, want 0 to %d", m.Layer, id, r.Experts-1)
			}
			sent.PerExpert[id]++
		}
		if key := (stepKey{iteration: rec.Iteration, layer: m.Layer}); recorded[key] == r.Ranks {
			steps.step(key, r.Experts).send(sent)
		}
	}
	return nil
}

// inflate decodes base64 of zlib, which must hold exactly want bytes.
func inflate(text string, want int64) (raw []byte, err error) {
	z, err := zlib.NewReader(base64.NewDecoder(base64.StdEncoding, bytes.NewReader([]byte(text))))
	if err != nil {
		return nil, fmt.Errorf("raw_data is not base64 of zlib: %w", err)
	}
	defer func() { err = errors.Join(err, z.Close()) }()
	raw, err = io.ReadAll(io.LimitReader(z, min(want, maxFile)+1))
	if err != nil {
		return nil, fmt.Errorf("raw_data: %w", err)
	}
	if int64(len(raw)) != want {
		return nil, fmt.Errorf("raw_data: want %d bytes as the shapes say, have %d or more", want, len(raw))
	}
	return raw, nil
}
