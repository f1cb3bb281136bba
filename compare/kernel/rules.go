package kernel

// Phases that single kernels fuse.
var (
	allOfMoE        = []Phase{PhaseDispatch, PhaseExperts, PhaseCombine}
	routingAndMoE   = []Phase{PhaseRouter, PhaseExperts}
	combineAndShare = []Phase{PhaseCombine, PhaseCommunication}
)

// Quantizing is the library of activations and quantizations, which prepare what the GEMM
// behind them reads.
const Quantizing = "activation and quantization"

// kernelRules is the classifier, specific rules before general ones. A family
// that serves several phases under one name has a rule that says unknown: a
// guess would be counted as knowledge. Dense GEMMs are other compute: the
// projections and shared experts of every engine; where an eager loop runs
// routed experts through them, only ranges can tell.
var kernelRules = []kernelRule{
	// everything in one kernel
	{function: `\w*_mega_moe_impl\b`, phase: PhaseExperts, library: "DeepGEMM", collective: true, fused: allOfMoE,
		source: "deep_gemm/impls"},
	{function: `kernel_cutlass_\w*(?i:mega_?moe)`, phase: PhaseExperts, library: "CuTe DSL", collective: true,
		fused:  allOfMoE,
		source: "FlashInfer and TensorRT-LLM, MegaMoECuteDsl: fc1fc2_kernel_impl with the exchange in it"},
	{function: `(?:moe_monokernel|monomoe)::|moe_kernel_topk\b`, phase: PhaseExperts, library: "FlashInfer, vLLM",
		collective: true, fused: routingAndMoE, source: "flashinfer monomoe: routing, both GEMMs and the sum"},
	{function: `moe(?:finalize|reduce)_allreduce_fusion_kernel`, phase: PhaseCombine, library: "TensorRT-LLM",
		collective: true, fused: combineAndShare, source: "kernels/communicationKernels/moeAllReduceFusionKernels.cu"},

	// exchange of tokens between ranks
	{function: `(?:deep_ep|dpsk::ep)::.*\bbarrier_impl\b|(?:deep_ep|dpsk::ep)::.*\bclean_low_latency_buffer|(?:deep_ep|` +
		`dpsk::ep)::.*\bcached_notify\b`,
		phase: PhaseCommunication, library: "DeepEP", collective: true, source: "deep_ep csrc/kernels, elastic"},
	{function: `(?:deep_ep|dpsk::ep)::.*\bget_dispatch_layout`, phase: PhaseDispatch, library: "DeepEP",
		source: "deep_ep csrc/kernels/layout.cu"},
	{function: `(?:deep_ep|dpsk::ep)::.*\bdispatch_copy_epilogue_impl`, phase: PhaseDispatch, library: "DeepEP",
		source: "deep_ep elastic"},
	{function: `(?:deep_ep|dpsk::ep)::.*\bcombine_reduce_epilogue_impl`, phase: PhaseCombine, library: "DeepEP",
		source: "deep_ep elastic"},
	{function: `(?:deep_ep|dpsk::ep)::.*\b(?:cached_notify_|notify_|hybrid_)?dispatch`, phase: PhaseDispatch,
		library: "DeepEP", collective: true,
		source: "deep_ep csrc/kernels/{intranode,internode,internode_ll}.cu, forks' suffixes; deepseek-ai/profile-data"},
	{function: `(?:deep_ep|dpsk::ep)::.*\b(?:cached_notify_|notify_|hybrid_)?combine`, phase: PhaseCombine,
		library: "DeepEP", collective: true, source: "deep_ep csrc/kernels/{intranode,internode,internode_ll}.cu"},
	{function: `moeA2ADispatchKernel\b`, phase: PhaseDispatch, library: "TensorRT-LLM", collective: true,
		source: "kernels/communicationKernels/moeAlltoAllKernels.cu"},
	{function: `moeA2A(?:PrepareDispatch|SanitizeExpertIds)Kernel\b`, phase: PhaseDispatch, library: "TensorRT-LLM",
		source: "kernels/communicationKernels/moeAlltoAllKernels.cu"},
	{function: `moeA2ACombineKernel\b`, phase: PhaseCombine, library: "TensorRT-LLM", collective: true,
		source: "kernels/communicationKernels/moeAlltoAllKernels.cu"},
	{function: `moeA2APrepareCombineKernel\b`, phase: PhaseCombine, library: "TensorRT-LLM",
		source: "kernels/communicationKernels/moeAlltoAllKernels.cu"},
	{function: `moe_comm::moeAllToAllKernel\b`, phase: PhaseDispatch, library: "TensorRT-LLM, FlashInfer",
		collective: true, source: "kernels/fusedMoeCommKernels.cu"},
	{function: `(?:moeAllToAllKernel|allToAllMetadataDevice)\b`, phase: PhaseCommunication, library: "TensorRT-LLM",
		collective: true, source: "kernels/moeCommKernels.cu, moePrepareKernels.cu"},
	{function: `(?:computeCountAndIndiceDevice|computeCumsumDevice|moveIndiceDevice|memsetExpertIdsDevice|` +
		`computeSendRecvRankCountKernel|computeSendRecvIndicesKernel|inplaceSendRecvRankCumSumKernel|moeLocalGatherDevice)\b`,
		phase: PhaseDispatch, library: "TensorRT-LLM", source: "kernels/moeCommKernels.cu, moePrepareKernels.cu"},
	{function: `pplx::.*\bdispatchKernel\b`, phase: PhaseDispatch, library: "pplx", collective: true,
		source: "pplx-kernels csrc/all_to_all"},
	{function: `pplx::.*\bcombineKernel\b`, phase: PhaseCombine, library: "pplx", collective: true,
		source: "pplx-kernels csrc/all_to_all"},
	{function: `nccl_ep::.*[dD]ispatch`, phase: PhaseDispatch, library: "NCCL EP", collective: true,
		source: "nccl contrib/nccl_ep"},
	{function: `nccl_ep::.*[cC]ombine`, phase: PhaseCombine, library: "NCCL EP", collective: true,
		source: "nccl contrib/nccl_ep"},
	{function: `(?:mori::moe::)?EpDispatch\w*`, phase: PhaseDispatch, library: "MORI", collective: true,
		source: "mori src/ops/dispatch_combine"},
	{function: `(?:mori::moe::)?EpCombine\w*`, phase: PhaseCombine, library: "MORI", collective: true,
		source: "mori src/ops/dispatch_combine"},
	{function: `nccl(?:Symk)?(?:Dev)?Kernel`, phase: PhaseCommunication, library: "NCCL", collective: true,
		source: "captures; nccl src/device, symmetric"},
	{function: `cross_device_reduce_[12]stage\b`, phase: PhaseCommunication, library: "vLLM, SGLang", collective: true,
		source: "csrc/custom_all_reduce.cuh"},
	{function: `allreduce_fusion_kernel_\w+|(?:one|two)[sS]hotAll[rR]educe\w*Kernel\b|lamport_\w+|rmsNormLamport\b`,
		phase: PhaseCommunication, library: "TensorRT-LLM, FlashInfer", collective: true,
		source: "kernels/communicationKernels/allReduceFusionKernels.cu, mnnvlAllreduceKernels.cu, " +
			"kernels/customAllReduceKernels.cu"},
	{function: `(?:multimem|(?:one|two)_shot)_all_(?:reduce|gather)_kernel\w*|multimem_one_shot_all_reduce_kernel\b|` +
		`symmetric_memory::(?:barrier|put_signal|wait_signal)_kernel\b`, phase: PhaseCommunication, library: "PyTorch",
		collective: true, source: "torch csrc/distributed/c10d/symm_mem/CUDASymmetricMemory*.cu"},
	{function: `(?:quickreduce::)?allreduce_prototype_(?:one|two)shot\b`, phase: PhaseCommunication,
		library: "vLLM, SGLang", collective: true, source: "csrc/quickreduce/quick_reduce.h"},
	{function: `(?:barrier|sync)(?:_all)?_on_stream_kernel\w*|nvshmem\w*`, phase: PhaseCommunication,
		library: "NVSHMEM", collective: true, source: "nvshmem src/host/stream/coll/barrier"},

	// gate
	{function: `router_gemm_kernel|tinygemm_kernel\b|cake_router_gemm_|(?:_rocm_)?(?:dsv3|gpt_oss|fp32|` +
		`llama4)_router_gemm`,
		phase: PhaseRouter, library: "FlashInfer, vLLM",
		source: "flashinfer gemm/dsv3_router_gemm.cuh, csrc/tinygemm2.cu; vllm csrc/moe"},
	{function: `fused_a_gemm_kernel\b`, phase: PhaseAttention, library: "TensorRT-LLM, vLLM, SGLang",
		source: "dsv3_fused_a_gemm: the projections before MLA"},
	{function: `topkGating\w*|topk_gating_softmax|moeSoftmax\b|moeTopK\b|moeSigmoid\b`, phase: PhaseRouter,
		library: "vLLM, SGLang, TensorRT-LLM", source: "vllm csrc/moe/topk_softmax_kernels.cu"},
	{function: `grouped_topk_fused\w*|topk_with_k2_kernel|group_idx_and_topk_idx_kernel`, phase: PhaseRouter,
		library: "vLLM", source: "vllm csrc/moe/grouped_topk_kernels.cu"},
	{function: `(?:kimi_k2_)?moe_fused_gate_kernel|moe_hash_topk_fused`, phase: PhaseRouter, library: "SGLang",
		source: "sgl-kernel/csrc/moe"},
	{function: `grouped_topk_(?:opt_sort_)?kernel\b`, phase: PhaseRouter, library: "aiter",
		source: "aiter csrc/kernels/topk_softmax_kernels_group.cu"},
	{function: `customMoeRoutingKernel\b`, phase: PhaseRouter, library: "TensorRT-LLM",
		source: "kernels/customMoeRoutingKernels.cu; traces of Qwen3-30B-A3B"},
	{function: `topk_moe_cuda\b`, phase: PhaseRouter, library: "llama.cpp", source: "ggml-cuda/topk-moe.cu"},
	{function: `deepseek_v3_topk_kernel\b`, phase: PhaseRouter, library: "TensorRT-LLM",
		source: "kernels/noAuxTcKernels.cu"},
	{function: `moe::dev::routing::|routing(?:DeepSeek|Renormalize|Llama4|Custom|Precomputed)::routing|` +
		`kernel_cake_deepseek_routing_`,
		phase: PhaseRouter, library: "TRTLLM-gen", source: "trtllmGenKernels/blockScaleMoe, flashinfer"},
	{function: `_topk_forward\b|_routing_\w+|_combined_routing\w*|_sum_bitmatrix_rows|_compute_writeback_idx|` +
		`pack_bitmatrix\b`,
		phase: PhaseRouter, library: "triton_kernels",
		source: "triton_kernels/routing_details, topk_details; vllm fused_moe/gpt_oss_triton_kernels_moe.py"},
	{function: `fused_topk_with_score_function_|fused_(?:score_for_)?moe_aux_loss_`, phase: PhaseRouter,
		library: "TransformerEngine", source: "common/fused_router"},
	{function: `at::native::(?:sb|mb)topk::\w+`, phase: PhaseUnknown, library: "PyTorch", topK: true,
		source: "captures: torch.topk over experts, and over the vocabulary when tokens are sampled"},
	{function: `at::native::bitonicSortKVInPlace\b|softmax_warp_forward\b`, phase: PhaseUnknown, library: "PyTorch",
		source: "captures: torch.sort and softmax, of the gate and of anything else"},

	// from routing to expert order
	{function: `(?:moe_align_block_size_(?:small_batch_expert_)?kernel|batched_moe_align_block_size_kernel|` +
		`count_and_sort_expert_tokens_kernel)\b`,
		phase: PhaseDispatch, library: "vLLM, SGLang", source: "vllm csrc/moe/moe_align_sum_kernels.cu"},
	{function: `(?:compute_problem_sizes|compute_expert_(?:blockscale_)?offsets|compute_arg_sorts|shuffleRowsKernel|` +
		`get_group_gemm_starts|apply_expert_map)\b`, phase: PhaseDispatch, library: "vLLM, SGLang", source: "csrc/moe, " +
		"csrc/quantization/cutlass_w8a8/moe"},
	{function: `(?:fusedBuildExpertMapsSortFirstTokenKernel|(?:block|global|merge)ExpertPrefixSum(?:Large)?Kernel|` +
		`buildMinLatencyActiveExpertMapsKernel|computeStridesTmaWarpSpecializedKernel|expandInputRowsKernel|` +
		`computeFP8DequantScaleKernel)\b`,
		phase: PhaseDispatch, library: "TensorRT-LLM, FlashInfer", source: "cutlass_kernels/moe_gemm"},
	{function: `moeUnpermuteKernel\b|moe_unpermute_kernel\b|_unpermute_kernel\b|moe_recover_topK_kernel\b|` +
		`_fwd_kernel_ep_gather\b`,
		phase: PhaseCombine, library: "TensorRT-LLM, TransformerEngine, SGLang", source: "cute_dsl, common/permutation, " +
			"ep_moe/kernels.py"},
	{function: `(?:moePermuteKernel|moeOutputMemsetKernel|moe::dev::permute::permuteKernel)\b`, phase: PhaseDispatch,
		library: "TensorRT-LLM", source: "cute_dsl, blockScaleMoe/DevKernel.cu"},
	{function: `_fwd_kernel_ep_scatter_[12]\b|_count_expert_num_tokens\b|_preprocess_after_permute_kernel\b|` +
		`(?:_?masked_index_gather_kernel|_masked_index_copy_group_quant_fp8)\b`,
		phase: PhaseDispatch, library: "SGLang, vLLM, TensorRT-LLM", source: "ep_moe/kernels.py, deep_gemm_utils.py"},
	{function: `moe_permute_(?:topK_)?(?:kernel|row_map)\b|_permute_kernel\b|_row_id_map_pass_[123]_kernel\b|` +
		`_make_chunk_sort_map_kernel\b`,
		phase: PhaseDispatch, library: "TransformerEngine, grouped_gemm", source: "common/permutation, " +
			"triton/permutation.py"},
	{function: `mm_ids_helper\b`, phase: PhaseDispatch, library: "llama.cpp",
		source: "ggml-cuda/mmid.cu; the GEMMs behind it, mul_mat_q and the like, are those of dense layers too"},
	{function: `(?:kentry|opus_moe_sorting_entry)\b`, arguments: []string{"MoeSorting"}, phase: PhaseDispatch,
		library: "Composable Kernel, aiter", source: "ck_tile ops/fused_moe; published traces of MI300X and MI355X"},
	{function: `_padded_copy\b|_binned_copy\b|(?:megablocks::)?(?:replicate::)?ReplicateForwardKernel\b|` +
		`(?:megablocks::)?(?:construct_indices::)?ConstructIndicesKernel\b`, phase: PhaseDispatch, library: "MegaBlocks",
		source: "megablocks backend/kernels.py, csrc"},

	// grouped GEMM
	{function: `fused_moe_kernel|batched_triton_kernel\b|grouped_gemm_triton_kernel\b`, phase: PhaseExperts, gemm: true,
		library: "Triton: vLLM, SGLang", source: "fused_moe.py, fused_batched_moe.py, ep_moe/kernels.py"},
	{function: `.*`, arguments: []string{"::GroupProblemShape<", "::MoeFCGemm"}, phase: PhaseExperts, gemm: true,
		library: "CUTLASS", source: "captures: torch._grouped_mm; vLLM, SGLang, TensorRT-LLM, FlashInfer"},
	{function: `Kernel2?\b`, arguments: []string{"cutlass::gemm::kernel::GemmGrouped<"}, phase: PhaseExperts,
		gemm: true, library: "CUTLASS 2", source: "cutlass gemm/kernel/gemm_grouped.h; Megatron's grouped_gemm"},
	{function: `device_kernel\b`, arguments: []string{"dpsk::grouped_gemm::cuda::m_grouped",
		"dpsk::grouped_gemm::cuda::k_grouped"}, phase: PhaseExperts, gemm: true, library: "DeepSeek",
		source: "deepseek-ai/profile-data"},
	{function: `device_kernel\b`, arguments: []string{"dpsk::grouped_gemm::"}, phase: PhaseOther, library: "DeepSeek",
		source: "deepseek-ai/profile-data: dense by m_grouped's absence"},
	{function: `fused_moe::run_global\b|.*\bMoeFCGemm`, phase: PhaseExperts, gemm: true,
		library: "TensorRT-LLM, FlashInfer", source: "fused_moe_kernel.cuh, moe_cutlass_kernel.h"},
	{function: `at::cuda::detail::prepare_grouped_gemm_data\b`, phase: PhaseExperts, library: "PyTorch",
		source: "captures: torch._grouped_mm"},
	{function: `deep_gemm::.*mqa_logits`, phase: PhaseAttention, library: "DeepGEMM",
		source: "deep_gemm/impls: sparse attention's indexer"},
	{function: `deep_gemm::\w*[mk]_grouped_\w*`, phase: PhaseExperts, gemm: true, library: "DeepGEMM",
		source: "deep_gemm/impls, by name"},
	{function: `deep_gemm::\w*gemm\w*`, arguments: []string{"(deep_gemm::GemmType)1", "(deep_gemm::GemmType)2",
		"(deep_gemm::GemmType)3", "(deep_gemm::GemmType)5", "(deep_gemm::GemmType)6"}, phase: PhaseExperts, gemm: true,
		library: "DeepGEMM", source: "deep_gemm/impls: grouped, by GemmType"},
	{function: `deep_gemm::\w*gemm\w*`, arguments: []string{"(deep_gemm::GemmType)0", "(deep_gemm::GemmType)4"},
		phase: PhaseOther, library: "DeepGEMM", source: "deep_gemm/impls: dense or batched, by GemmType"},
	{function: `deep_gemm::\w*gemm\w*`, phase: PhaseUnknown, library: "DeepGEMM",
		source: "deep_gemm/impls: without GemmType, grouped or dense"},
	{function: `bmm_[A-Z]\w*_t\d+x\d+x\d+|MoE_Proj(?:Up|Down)_BatchN_|BatchedGemmKernel_BatchN_`, phase: PhaseExperts,
		gemm: true, library: "TRTLLM-gen", source: "trtllmGenKernels/batchedGemm cubins"},
	{function: `\w*contiguous_grouped_gemm_(?:swiglu|finalize)_fusion|cute_dsl_kernels\w*grouped_gemm`,
		phase: PhaseExperts, gemm: true, library: "CuTe DSL", source: "TensorRT-LLM cute_dsl_kernels/blackwell"},
	{function: `marlin_moe_wna16::Marlin\b|moe_wna16_gemm_kernel\b`, phase: PhaseExperts, gemm: true,
		library: "vLLM, SGLang", source: "csrc/moe/marlin_moe_wna16, moe_wna16.cu"},
	{function: `kentry\b`, arguments: []string{"MoeFlatmmKernel", "FusedMoeGemmKernel", "ck_tile::GroupedGemmKernel"},
		phase: PhaseExperts, gemm: true, library: "Composable Kernel, aiter",
		source: "ck_tile ops/flatmm, fused_moe, gemm; published profiles of gpt-oss on MI355X and of Primus Turbo"},
	{function: `kernel_moe_(?:mx)?gemm\w*|fmoe_\w+`, phase: PhaseExperts, gemm: true,
		library: "Composable Kernel, aiter",
		source:  "ck gridwise_moe_gemm, aiter hsa/*/fmoe; published traces of MI300X and MI355X"},
	{function: `_p?_?matmul_ogs\w*`, phase: PhaseExperts, gemm: true, library: "triton_kernels",
		source: "triton_kernels/matmul_ogs_details"},
	{function: `_p?_?matmul(?:_N[NT]{2}_\w+)?$`, phase: PhaseUnknown, library: "triton_kernels",
		source: "triton_kernels/matmul: routed and dense"},
	{function: `_sdd_kernel\b|_dsd_kernel\b|_dds_kernel\b`, phase: PhaseExperts, gemm: true, library: "MegaBlocks",
		source: "stk backend/triton_kernels.py: block-sparse GEMMs of dropless experts"},
	{function: `_kernel_grouped_gemm\w*|\w*grouped_gemm_masked\w*`, phase: PhaseExperts, gemm: true,
		library: "Triton, CuTe DSL",
		source:  "torchtitan experiments/kernels, flashinfer grouped_gemm_masked_blackwell"},
	{function: `moe_bgmv_(?:shrink|expand)_sliced_kernel\b|_fused_moe_lora_kernel\b`, phase: PhaseExperts,
		library: "vLLM", source: "LoRA of experts"},
	{function: `setup_grouped_gemm_kernel\b`, phase: PhaseExperts, library: "TransformerEngine",
		source: "common/gemm/cublaslt_grouped_gemm.cu"},
	{function: `\w*moe_ag_scatter\w*`, phase: PhaseExperts, library: "Flux",
		fused: []Phase{PhaseDispatch, PhaseExperts}, source: "flux src/moe_ag_scatter"},
	{function: `\w*moe_gather_rs\w*`, phase: PhaseExperts, library: "Flux", fused: []Phase{PhaseExperts, PhaseCombine},
		source: "flux src/moe_gather_rs"},

	// between and after the GEMMs
	{function: `do(?:Gated)?ActivationKernel\b|moeActivationKernel\b|moe::dev::activation::|` +
		`_silu_and_mul_post_quant_kernel\b|_silu_mul_per_token_group_quant_\w+|cvt_fp16_to_fp4_expert`, phase: PhaseExperts,
		library: "TensorRT-LLM, TRTLLM-gen, SGLang, vLLM", source: "cutlass_kernels/moe_gemm, " +
			"blockScaleMoe/DevKernel.cu, ep_moe/kernels.py, vllm fused_moe/deep_gemm_moe.py"},
	{function: `triton_(?:poi|per|red)_fused_\w*(?:rms_norm|mean\w*rsqrt)`, phase: PhaseOther, library: "norms",
		source: "captures: PyTorch Inductor's name lists what it fuses, the operator that reads the norm among them"},
	{function: `triton_(?:poi|per)_fused_\w*mul_neg_(?:slice|split)\w*`, phase: PhaseAttention,
		library: "PyTorch Inductor", source: "captures: rotary embedding of DeepSeek-V3, halves negated and stacked"},
	{function: `act_and_mul_kernel\b|silu_and_mul_(?:per_block_quant_)?kernel\b|silu_mul_quant_varlen_kernel\b|` +
		`swigluoai_and_mul_kernel\b|deep_gemm::transpose_fp32\b|per_token_group_quant_8bit_kernel|_per_token_quant_and_transform_kernel|quantize_with_block_size\b|` +
		`cvt_fp16_to_fp4|scale_1x128_kernel\b|deep_gemm::transpose_\w*pack|triton_(?:poi|per|red)_fused_`,
		phase: PhaseUnknown, library: Quantizing, source: "vLLM, SGLang, TensorRT-LLM, PyTorch " +
			"Inductor: for routed experts and for everything else"},
	{function: `finalizeMoeRouting(?:NoFilling)?Kernel\b|moe::dev::finalize::`, phase: PhaseCombine,
		library: "TensorRT-LLM, TRTLLM-gen", source: "cutlass_kernels/moe_gemm, blockScaleMoe/DevKernel.cu"},
	{function: `_?moe_sum_(?:reduce_|vec_)?kernel|apply_shuffle_mul_sum_kernel\b|_reduce_grouped\b|_finalize_matmul`,
		phase: PhaseCombine, library: "vLLM, SGLang, triton_kernels",
		source: "moe_align_sum_kernels.cu, sgl-kernel/csrc/moe, matmul_ogs_details"},

	// attention
	{function: `device_kernel\b`, arguments: []string{"flash::enable_sm", "flash::FlashAttnFwd", "FlashAttnFwdSm",
		"flash::FlashAttnBwd",
		"cutlass::fmha::"}, phase: PhaseAttention, library: "FlashAttention, CUTLASS",
		source: "flash-attention hopper; cutlass fmha"},
	{function: `(?:pytorch_)?flash::\w+|flash_fwd_\w+|flash_mla_\w+`, phase: PhaseAttention,
		library: "FlashAttention, FlashMLA", source: "flash-attention csrc, FlashMLA csrc"},
	{function: `flashinfer::(?:Batch|Single)(?:Prefill|Decode)With\w+|(?:Batch|Single)(?:Prefill|Decode)With\w+Kernel\b|` +
		`BatchMLA\w+Kernel\b|(?:PersistentVariableLength)?MergeStates?\w*Kernel\b|AppendPagedKVCache\w*Kernel\b`,
		phase: PhaseAttention, library: "FlashInfer", source: "flashinfer include/flashinfer/attention, page.cuh"},
	{function: `fmhaSm\d+\w*Kernel_|fmhaReductionKernel\b|fmha_v2_\w+|fmha_cutlassF_\w+|` +
		`cudnn_generated_fort_native_sdpa_\w+|(?:masked_)?multihead_attention_kernel\b|applyMLARope\w*|` +
		`applyBiasRopeUpdateKVCache\w*`,
		phase: PhaseAttention, library: "TensorRT-LLM, FlashInfer, PyTorch", source: "trtllmGenKernels/fmha, fmha_v2, " +
			"unfusedAttentionKernels"},
	{function: `paged_attention_v[12]_(?:reduce_)?kernel\b|reshape_and_cache\w*_kernel\b|` +
		`concat_and_cache_mla\w*_kernel\b|merge_attn_states_kernel\b|\w*rotary_embedding_kernel\b|set_mla_kv_buffer_kernel\b`,
		phase: PhaseAttention, library: "vLLM, SGLang", source: "csrc/attention, cache_kernels.cu, pos_encoding_kernels.cu"},
	{function: `chunk_(?:gated_delta|fwd_kernel|scaled_dot_kkt)\w*|fused_recurrent_\w+|_?causal_conv1d_\w+`,
		phase: PhaseAttention, library: "flash-linear-attention: vLLM, SGLang",
		source: "fla/ops, causal_conv1d.py: linear attention"},
	{function: `flash_attn_(?:ext|tile|vec_ext)\w*|kernel_mha\b|xqa_kernel_\w+`, phase: PhaseAttention,
		library: "llama.cpp, TensorRT-LLM", source: "ggml-cuda/fattn*.cuh; xqa cubins"},
	{function: `kernel_unified_attention_[23]d\b|_fwd_(?:grouped_)?kernel_stage[12]\b`, phase: PhaseAttention,
		library: "Triton: vLLM, SGLang", source: "triton_unified_attention.py, triton_decode_attention.py"},
	{function: `triton_tem_fused_\w*flex_attention\w*`, phase: PhaseAttention, library: "PyTorch Inductor",
		source: "torch _inductor/kernel/flex_attention.py"},
	{function: `kentry\b`, arguments: []string{"ck_tile::Fmha"}, phase: PhaseAttention, library: "Composable Kernel",
		source: "ck_tile ops/fmha; published traces of MI300X"},
	{function: `paged_attention_ll4mi_\w+`, phase: PhaseAttention, library: "vLLM, aiter",
		source: "vllm csrc/rocm/attention.cu"},

	// the rest of the model
	{function: `(?:vllm::|flashinfer::norm::|tensorrt_llm::kernels::)?(?:fused_add_)?(?:rms_norm\w*_kernel|` +
		`RMSNorm\w*Kernel|FusedAddRMSNorm\w*Kernel|generalRmsNorm|generalLayerNorm)\b`, phase: PhaseOther, library: "norms",
		source: "vllm csrc/layernorm_kernels.cu, flashinfer norm.cuh"},
	{function: `kentry\b`, arguments: []string{"ck_tile::Rmsnorm2dFwd"}, phase: PhaseOther, library: "norms",
		source: "ck_tile ops/rmsnorm2d; published traces of MI300X"},
	{function: `add_rmsnorm_\w+`, phase: PhaseOther, library: "norms", source: "aiter; published traces of MI300X"},
	{function: `Cijk_\w+|kernel_gemm_xdl_cshuffle\w*|hgemm_\w+|_gemm_a(?:\d+|fp4)_?w(?:\d+|fp4)_\w+|` +
		`triton_tem_fused_\w*mm_\w+`,
		phase: PhaseOther, library: "hipBLASLt, Composable Kernel, aiter, PyTorch Inductor",
		source: "published traces of MI300X and MI355X; torch _inductor/kernel/mm.py: dense GEMM of anything"},
	{function: `(?:sm\d+_xmma|trt_\w+?)_fprop_\w+|\w+_trt$`, phase: PhaseOther, library: "TensorRT",
		source: "TensorRT tactics: dense GEMM and convolution of anything"},
	{function: `nvjet_\w+|cublasLt::splitKreduce_kernel\b|(?:cublasGemv|gemv2[TN]|gemvx::|gemvNSP)\w*|(?:cutlass_\d+|` +
		`sm\d+_xmma|ampere|turing|volta|maxwell)_\w*gemm\w*`, phase: PhaseOther, library: "cuBLAS", source: "captures; " +
		"dense GEMM of anything"},
	{function: `device_kernel\b|Kernel2?\b`, arguments: []string{"cutlass::gemm::kernel::", "gemm_"}, phase: PhaseOther,
		library: "CUTLASS", source: "GemmUniversal without GroupProblemShape: dense"},
	{function: `at::(?:native|cuda)::\w+|(?:at_cuda_detail::)?cub::\w+`, phase: PhaseUnknown, library: "PyTorch, CUB",
		source: "captures: elementwise, indexing, sorting and reducing, for anything"},
}
