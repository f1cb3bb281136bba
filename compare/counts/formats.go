package counts

import (
	"bytes"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/counts/tensor"
)

// Format is one way in which an engine or a tool records expert load.
type Format struct {
	ID     string // a short name for help: "npy"
	Name   string // as results carry it
	Header string // what it begins with: a first line, keys, or file names
	Origin string // the flag, variable or endpoint that makes the engine record it

	match func(*source) bool
	read  func(*source, *Record) error
	array bool // whose dimensions Axes can name
}

// Names of formats that the code tells apart.
const (
	torchStatFormat = "SGLang expert distribution (stat)"
	torchPassFormat = "SGLang expert distribution (per pass)"
)

// formats are told apart by content; the first that matches reads the source.
var formats = []Format{
	{
		"trtllm-statistics", "TensorRT-LLM expert statistics",
		`folder: meta_info.json {"num_experts": 256, "num_experts_per_token": 8}, rank0.safetensors, rank1.safetensors, … ` +
			`with tensors "ITERATION_LAYER"`,
		"EXPERT_STATISTIC_ITER_RANGE=100-200 EXPERT_STATISTIC_PATH=DIR trtllm-bench …",
		hasFile(tensorrtInfoFile), readTensorRT, false,
	}, {
		"sglang-passes", torchPassFormat,
		"folder: expert_distribution_recorder_TIME_0.pt, expert_distribution_recorder_TIME_1.pt, …",
		"--expert-distribution-recorder-mode per_pass (or per_token); POST /start_expert_distribution_record, /stop_…, " +
			"/dump_…",
		hasFile(torchRecord), readTorchFolder, false,
	}, {
		"sglang-stat", torchStatFormat,
		`expert_distribution_recorder_TIME.pt: {"logical_count": [steps × layers × experts]}, or a .pt of one tensor ` +
			`[layers, experts]`,
		"--expert-distribution-recorder-mode stat; POST /start_expert_distribution_record, /stop_…, /dump_…",
		hasMember("/data.pkl"), readTorch, true,
	}, {
		"sglang-counts", "SGLang logical counts",
		`{"logical_count": [[0, 5, …], …]}: layers × experts, or steps × layers × experts`,
		"a recording of SGLang as JSON, which --init-expert-location takes",
		hasKeys("logical_count"), readLogicalCount, true,
	}, {
		"matrix", "JSON matrix of loads",
		"[[0, 5, …], …]: layers × experts; --axes names other dimensions",
		"a tensor of counts printed by tolist()",
		func(s *source) bool { return s.values != nil && s.values[0][0] == '[' }, readMatrix, true,
	}, {
		"routed-experts", routedFormat,
		`one object a request with "routed_experts": [tokens × layers × top-k] or base64 of such a .npy; one a token and ` +
			`layer, {"layer": 0, "topk_ids": [7, 6, …]}`,
		"vLLM, SGLang: --enable-return-routed-experts; TensorRT-LLM: CompletionOutput.routed_experts, saved as JSON",
		hasRoutes, readRoutes, false,
	}, {
		"npy", "NumPy array of loads",
		".npy of integers [layers, experts]; --axes names other dimensions",
		"numpy.save; vllm-ascend's experiments",
		func(s *source) bool { return bytes.HasPrefix(s.content, []byte(tensor.NumPyMagic)) }, readNPY, true,
	}, {
		"metrics", "Prometheus text",
		`vllm:eplb_tokens_routed_to_expert{layer_idx="3",logical_expert_id="7"} 120 (or …_to_ep_rank, ` +
			`vllm:phy_expert_heat, sglang:eplb_gpu_physical_count_bucket, sglang:eplb_balancedness_sum)`,
		"GET /metrics, or 'moebalance counts http://HOST:PORT/metrics --for 60s'; SGLang: --enable-metrics " +
			"--expert-balancedness-report-mode prometheus (before 0.5.23: --enable-expert-distribution-metrics); with " +
			"SGLANG_EPLB_HEATMAP_COLLECTION_INTERVAL=N the load per rank too",
		hasLine(metricsLine), readMetrics, false,
	}, {
		"log", "engine log lines",
		"[Expert Balancedness] … forward_pass_id=… (SGLang), EPLB step: … balancedness=… (vLLM), [Expert Hotness] … " +
			"(vllm-ascend)",
		`SGLang: --expert-balancedness-report-mode server_log (before 0.5.23: --enable-expert-distribution-metrics); vLLM: ` +
			`--eplb-config '{"log_balancedness": true}'`,
		hasLine(logLine), readLog, false,
	}, {
		"csv", "expert counts CSV",
		"layer,expert,count or layer_id,expert_id,num_tokens; step and phase are optional; without counts a row is a choice",
		"spreadsheets and scripts; older SGLang",
		func(s *source) bool { return s.values == nil && csvHeader(s.content) != nil }, readCSV, false,
	},
}

// Formats lists what Read understands, by name.
func Formats() []Format {
	return slices.SortedFunc(slices.Values(formats), func(a, b Format) int { return strings.Compare(a.Name, b.Name) })
}
