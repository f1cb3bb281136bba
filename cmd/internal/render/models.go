package render

import (
	"fmt"
	"strconv"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
	"github.com/moebalance/moebalance/router/table"
)

// modelsResult is the JSON of models.
type modelsResult struct {
	SchemaVersion int            `json:"schema_version"`
	Kind          string         `json:"kind"` // always "models"
	Models        []router.Model `json:"models"`
}

// Models lays presets out.
func Models(models []router.Model) output.Document {
	t := table.Of("models", "", models, "name, experts, top_k=top-k, groups:label, method, bias, scale:real, "+
		"hidden_size=hidden, intermediate_size=intermediate, layers, moe_layers=MoE layers, logits_dtype=logits, source",
		table.Computed("groups", func(m router.Model) any {
			if !m.Grouped() {
				return nil // none to choose from
			}
			return fmt.Sprintf("%d of %d", m.TopKGroups, m.Groups)
		}), table.Computed("scale", func(m router.Model) any { return decimal(m.Scale) }))
	return output.Document{Headline: quantity.Count(len(models), "model"), Tables: []table.Table{t},
		Value: modelsResult{SchemaVersion: 1, Kind: "models", Models: models}}
}

// decimal is the float64 of the same shortest decimal text: 2.827 stays 2.827.
func decimal(x float32) float64 {
	y, _ := strconv.ParseFloat(strconv.FormatFloat(float64(x), 'g', -1, 32), 64)
	return y
}
