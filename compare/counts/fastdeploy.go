package counts

// readFastDeploy reads tokens_per_expert_stats_list of rearrange-experts.json,
// or the answer of /get_per_expert_tokens_stats: layers × logical experts,
// summed since the last rearrangement. Where the experts were is not read: the
// file does not say it in one way.
func readFastDeploy(s *source, r *Record) error {
	var file struct {
		Stats [][]int64 `json:"tokens_per_expert_stats_list"`
		Data  [][]int64 `json:"data"`
	}
	if err := s.object(&file); err != nil {
		return err
	}
	rows := file.Stats
	if rows == nil {
		rows = file.Data
	}
	r.Window = true
	return r.addLayers(0, rows)
}
