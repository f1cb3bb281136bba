// Package hook holds the Python package that routes PyTorch engines by a cache of
// package logits: moebalance_hook, whose first lines describe its variables. It
// needs torch and safetensors, and the engine that it is loaded into.
//
// The files are a folder for PYTHONPATH. Beside the package a dist-info declares the
// entry points of the groups vllm.general_plugins and sglang.srt.plugins, which every
// process of vLLM and SGLang loads
// (https://docs.vllm.ai/en/latest/design/plugin_system.html).
package hook

import (
	"embed"
	"fmt"
)

//go:embed moebalance_hook/*.py
var modules embed.FS

// Mark begins every Python file of the hook, so that a later version may replace it.
const Mark = "# moebalance's hook"

// File is one file of the hook.
type File struct {
	Name string // its path in the folder for PYTHONPATH
	Text []byte
}

// Files lists the hook's files, for a version of this tool.
func Files(version string) []File {
	var files []File
	list, _ := modules.ReadDir("moebalance_hook") // embedded: neither fails
	for _, f := range list {
		name := "moebalance_hook/" + f.Name()
		text, _ := modules.ReadFile(name)
		files = append(files, File{name, append(fmt.Appendf(nil, "%s, version %s.\n", Mark, version), text...)})
	}
	info := "moebalance_hook-" + version + ".dist-info/"
	return append(files,
		File{info + "METADATA", fmt.Appendf(nil, "Metadata-Version: 2.1\nName: moebalance-hook\nVersion: %s\n",
			version)},
		File{info + "entry_points.txt",
			[]byte("[vllm.general_plugins]\nmoebalance = moebalance_hook:vllm\n\n[sglang.srt.plugins]\nmoebalance = " +
				"moebalance_hook:sglang\n")})
}
