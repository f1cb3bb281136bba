package counts

import "encoding/json"

const fastDeployFormat = "FastDeploy expert statistics"

// readFastDeploy reads tokens_per_expert_stats_list of rearrange-experts.json,
// or the answer of /get_per_expert_tokens_stats: layers × logical experts,
// summed since the last rearrangement. Where the experts were is not read: the
// file does not say it in one way.
func readFastDeploy(path string, objects []json.RawMessage) (*Record, error) {
	var file struct {
		Stats [][]int64 `json:"tokens_per_expert_stats_list"`
		Data  [][]int64 `json:"data"`
	}
	if err := one(objects, &file); err != nil {
		return nil, err
	}
	rows := file.Stats
	if rows == nil {
		rows = file.Data
	}
	r := &Record{Source: path, Format: fastDeployFormat, Window: true}
	if err := r.addLayers(0, rows); err != nil {
		return nil, err
	}
	return r.finish()
}
