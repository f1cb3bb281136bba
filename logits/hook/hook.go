// Package hook holds the Python module that routes PyTorch engines by a cache of
// package logits: moebalance_hook.py, whose first lines describe its variables. It
// needs torch and safetensors, and the engine that it is loaded into.
//
// The files are a folder for PYTHONPATH. Beside the module a dist-info declares the
// entry points of the groups vllm.general_plugins and sglang.srt.plugins, which every
// process of vLLM and SGLang loads
// (https://docs.vllm.ai/en/latest/design/plugin_system.html).
package hook

import (
	_ "embed"
	"fmt"
)

//go:embed moebalance_hook.py
var module []byte

// File is one file of the hook.
type File struct {
	Name string // its path in the folder for PYTHONPATH
	Text []byte
}

// Files are those of the hook, for a version of this tool.
func Files(version string) []File {
	info := "moebalance_hook-" + version + ".dist-info/"
	return []File{
		{"moebalance_hook.py", module},
		{info + "METADATA", fmt.Appendf(nil, "Metadata-Version: 2.1\nName: moebalance-hook\nVersion: %s\n", version)},
		{info + "entry_points.txt", []byte("[vllm.general_plugins]\nmoebalance = moebalance_hook:vllm\n\n[sglang.srt.plugins]\nmoebalance = moebalance_hook:sglang\n")},
	}
}
