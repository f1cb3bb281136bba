package render

import (
	"fmt"
	"strconv"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// modelsResult is the JSON of models.
type modelsResult struct {
	SchemaVersion int            `json:"schema_version"`
	Kind          string         `json:"kind"` // always "models"
	Models        []router.Model `json:"models"`
}

// Models lays presets out.
func Models(models []router.Model) output.Document {
	result := modelsResult{SchemaVersion: 1, Kind: "models", Models: models}
	t := output.Table{Name: "models", Columns: []output.Column{
		{Name: "name"}, {Name: "experts", Kind: output.Count}, {Name: "top-k", Key: "top_k", Kind: output.Count}, {Name: "groups"},
		{Name: "method"}, {Name: "bias"}, {Name: "scale", Kind: output.Real}, {Name: "hidden", Key: "hidden_size", Kind: output.Count},
		{Name: "intermediate", Key: "intermediate_size", Kind: output.Count}, {Name: "layers", Kind: output.Count},
		{Name: "MoE layers", Key: "moe_layers", Kind: output.Count}, {Name: "logits", Key: "logits_dtype"}, {Name: "source"},
	}}
	for _, m := range result.Models {
		var groups any // none to choose from
		if m.Grouped() {
			groups = fmt.Sprintf("%d of %d", m.TopKGroups, m.Groups)
		}
		t.Rows = append(t.Rows, []any{
			m.Name, m.Experts, m.TopK, groups, string(m.Method), m.Bias, decimal(m.Scale),
			m.Hidden, m.Intermediate, m.Layers, m.MoELayers, m.LogitsDType, m.Source,
		})
	}
	return output.Document{Headline: quantity.Count(len(result.Models), "model"), Tables: []output.Table{t}, Value: result}
}

// decimal is the float64 of the same shortest decimal text: 2.827 stays 2.827.
func decimal(x float32) float64 {
	y, _ := strconv.ParseFloat(strconv.FormatFloat(float64(x), 'g', -1, 32), 64)
	return y
}
