package logits

import _ "embed"

// Schema is the JSON schema (draft 2020-12) of an entry's header: the safetensors header,
// which names the tensors and holds the metadata.
//
//go:embed schema.json
var Schema string
