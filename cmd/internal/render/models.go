package render

import (
	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
	"github.com/moebalance/moebalance/router/table"
)

// Models lays presets out.
func Models(models []router.Model) output.Document {
	return output.Document{Headline: quantity.Count(len(models), "model"), Tables: []table.Table{table.Of("models", "",
		models, "name, experts, top_k=top-k, groups, top_k_groups=groups of a token, method, bias, scale, "+
			"layers, moe_layers=MoE layers, logits_dtype=logits, source")},
		Value: struct {
			SchemaVersion int            `json:"schema_version"`
			Kind          string         `json:"kind"` // always "models"
			Models        []router.Model `json:"models"`
		}{1, "models", models}}
}
