package kernel

// Classes of kernels; the last ones fuse several phases.
var (
	routing    = Class{Phase: PhaseRouter}
	topK       = Class{Phase: PhaseUnknown, TopK: true}
	dispatch   = Class{Phase: PhaseDispatch}
	sends      = Class{Phase: PhaseDispatch, Collective: true}
	experts    = Class{Phase: PhaseExperts}
	gemm       = Class{Phase: PhaseExperts, GEMM: true}
	combine    = Class{Phase: PhaseCombine}
	returns    = Class{Phase: PhaseCombine, Collective: true}
	attention  = Class{Phase: PhaseAttention}
	other      = Class{Phase: PhaseOther}
	collective = Class{Phase: PhaseCommunication, Collective: true}
	unknown    = Class{Phase: PhaseUnknown}

	allOfMoE = Class{Phase: PhaseExperts, Collective: true,
		Fused: []Phase{PhaseDispatch, PhaseExperts, PhaseCombine}}
	routingAndMoE   = Class{Phase: PhaseExperts, Collective: true, Fused: []Phase{PhaseRouter, PhaseExperts}}
	dispatchAndMoE  = Class{Phase: PhaseExperts, Fused: []Phase{PhaseDispatch, PhaseExperts}}
	moeAndCombine   = Class{Phase: PhaseExperts, Fused: []Phase{PhaseExperts, PhaseCombine}}
	combineAndShare = Class{Phase: PhaseCombine, Collective: true, Fused: []Phase{PhaseCombine, PhaseCommunication}}
)

// Quantizing is the library of activations and quantizations, which prepare what the GEMM
// behind them reads.
const Quantizing = "activation and quantization"

// deepEP begins the names of DeepEP's kernels and of those that took them over: NIXL, UCCL.
const deepEP = `(?:deep_ep|dpsk::ep|hybrid_ep|nixl_ep|uccl)::.*\b`

// kernelRules is the classifier, specific rules before general ones. A family
// that serves several phases under one name has a rule that says unknown: a
// guess would be counted as knowledge. Dense GEMMs are other compute: the
// projections and shared experts of every engine; where an eager loop runs
// routed experts through them, only ranges can tell.
var kernelRules = []kernelRule{
	// everything in one kernel
	{allOfMoE, "DeepGEMM", `\w*_mega_moe_impl\b`, "", "deep_gemm/impls"},
	{allOfMoE, "CuTe DSL", `kernel_cutlass_\w*(?i:mega_?moe)`, "",
		"FlashInfer and TensorRT-LLM, MegaMoECuteDsl: fc1fc2_kernel_impl with the exchange in it"},
	{routingAndMoE, "FlashInfer, vLLM", `(?:moe_monokernel|monomoe)::|moe_kernel_topk\b`, "",
		"flashinfer monomoe: routing, both GEMMs and the sum"},
	{combineAndShare, "TensorRT-LLM", `moe(?:finalize|reduce)_allreduce_fusion_kernel`, "",
		"kernels/communicationKernels/moeAllReduceFusionKernels.cu"},

	// exchange of tokens between ranks
	{collective, "DeepEP", deepEP + `(?:(?:barrier_impl|cached_notify|device_sync_kernel)\b|clean_low_latency_buffer)`,
		"", "deep_ep csrc/kernels, elastic, branch hybrid-ep"},
	{dispatch, "DeepEP", deepEP + `(?:get_dispatch_layout|dispatch_copy_epilogue_impl)`, "",
		"deep_ep csrc/kernels/layout.cu, elastic"},
	{combine, "DeepEP", deepEP + `combine_reduce_epilogue_impl`, "", "deep_ep elastic"},
	{sends, "DeepEP", deepEP + `(?:cached_notify_|notify_|hybrid_)?dispatch`, "",
		"deep_ep csrc/kernels/{intranode,internode,internode_ll}.cu, forks' suffixes; deepseek-ai/profile-data"},
	{returns, "DeepEP", deepEP + `(?:cached_notify_|notify_|hybrid_)?combine`, "",
		"deep_ep csrc/kernels/{intranode,internode,internode_ll}.cu"},
	{sends, "TensorRT-LLM", `moeA2ADispatchKernel\b`, "", "kernels/communicationKernels/moeAlltoAllKernels.cu"},
	{dispatch, "TensorRT-LLM", `moeA2A(?:PrepareDispatch|SanitizeExpertIds)Kernel\b`, "",
		"kernels/communicationKernels/moeAlltoAllKernels.cu"},
	{returns, "TensorRT-LLM", `moeA2ACombineKernel\b`, "", "kernels/communicationKernels/moeAlltoAllKernels.cu"},
	{combine, "TensorRT-LLM", `moeA2APrepareCombineKernel\b`, "", "kernels/communicationKernels/moeAlltoAllKernels.cu"},
	{sends, "TensorRT-LLM, FlashInfer", `moe_comm::moeAllToAllKernel\b`, "", "kernels/fusedMoeCommKernels.cu"},
	{collective, "TensorRT-LLM", `(?:moeAllToAllKernel|allToAllMetadataDevice)\b`, "",
		"kernels/moeCommKernels.cu, moePrepareKernels.cu"},
	{dispatch, "TensorRT-LLM",
		`(?:computeCountAndIndiceDevice|computeCumsumDevice|moveIndiceDevice|memsetExpertIdsDevice|` +
			`computeSendRecvRankCountKernel|computeSendRecvIndicesKernel|inplaceSendRecvRankCumSumKernel|` +
			`moeLocalGatherDevice)\b`, "", "kernels/moeCommKernels.cu, moePrepareKernels.cu"},
	{sends, "pplx", `pplx::.*\bdispatchKernel\b`, "", "pplx-kernels csrc/all_to_all"},
	{returns, "pplx", `pplx::.*\bcombineKernel\b`, "", "pplx-kernels csrc/all_to_all"},
	{sends, "NCCL EP", `nccl_ep::.*[dD]ispatch`, "", "nccl contrib/nccl_ep"},
	{returns, "NCCL EP", `nccl_ep::.*[cC]ombine`, "", "nccl contrib/nccl_ep"},
	{sends, "MORI", `(?:mori::moe::)?EpDispatch\w*`, "", "mori src/ops/dispatch_combine"},
	{returns, "MORI", `(?:mori::moe::)?EpCombine\w*`, "", "mori src/ops/dispatch_combine"},
	{collective, "NCCL", `nccl(?:Symk)?(?:Dev)?Kernel`, "", "captures; nccl src/device, symmetric"},
	{collective, "vLLM, SGLang", `cross_device_reduce_[12]stage\b`, "", "csrc/custom_all_reduce.cuh"},
	{collective, "TensorRT-LLM, FlashInfer",
		`allreduce_fusion_kernel_\w+|(?:one|two)[sS]hotAll[rR]educe\w*Kernel\b|lamport_\w+|rmsNormLamport\b`, "",
		"kernels/communicationKernels, kernels/customAllReduceKernels.cu"},
	{collective, "PyTorch",
		`(?:multimem|(?:one|two)_shot)_all_(?:reduce|gather)_kernel\w*|multimem_one_shot_all_reduce_kernel\b|` +
			`symmetric_memory::(?:barrier|put_signal|wait_signal)_kernel\b`, "",
		"torch csrc/distributed/c10d/symm_mem/CUDASymmetricMemory*.cu"},
	{collective, "vLLM, SGLang", `(?:quickreduce::)?allreduce_prototype_(?:one|two)shot\b`, "",
		"csrc/quickreduce/quick_reduce.h"},
	{collective, "NVSHMEM", `(?:barrier|sync)(?:_all)?_on_stream_kernel\w*|nvshmem\w*`, "",
		"nvshmem src/host/stream/coll/barrier"},

	// gate
	{routing, "FlashInfer, vLLM",
		`router_gemm_kernel|tinygemm_kernel\b|cake_router_gemm_|(?:_rocm_)?(?:dsv3|gpt_oss|fp32|llama4)_router_gemm`,
		"", "flashinfer gemm/dsv3_router_gemm.cuh, csrc/tinygemm2.cu; vllm csrc/moe"},
	{attention, "TensorRT-LLM, vLLM, SGLang", `fused_a_gemm_kernel\b`, "",
		"dsv3_fused_a_gemm: the projections before MLA"},
	{routing, "vLLM, SGLang, TensorRT-LLM", `topkGating\w*|topk_gating_softmax|moeSoftmax\b|moeTopK\b|moeSigmoid\b`, "",
		"vllm csrc/moe/topk_softmax_kernels.cu"},
	{routing, "vLLM", `grouped_topk_fused\w*|topk_with_k2_kernel|group_idx_and_topk_idx_kernel|` +
		`_eplb_map_and_record_i32_kernel\b`, "",
		"vllm csrc/moe/grouped_topk_kernels.cu, fused_moe/router/base_router.py"},
	{routing, "TileKernels", `topk_sum_and_topk_idx\b|aux_fi_impl\b`, "",
		"deepseek-ai/TileKernels tile_kernels/moe; deepseek-ai/profile-data"},
	{routing, "SGLang", `(?:kimi_k2_)?moe_fused_gate_kernel|moe_hash_topk_fused`, "", "sgl-kernel/csrc/moe"},
	{routing, "aiter", `grouped_topk_(?:opt_sort_)?kernel\b`, "", "aiter csrc/kernels/topk_softmax_kernels_group.cu"},
	{routing, "TensorRT-LLM", `customMoeRoutingKernel\b`, "",
		"kernels/customMoeRoutingKernels.cu; traces of Qwen3-30B-A3B"},
	{routing, "llama.cpp", `topk_moe_cuda\b`, "", "ggml-cuda/topk-moe.cu"},
	{routing, "TensorRT-LLM", `deepseek_v3_topk_kernel\b`, "", "kernels/noAuxTcKernels.cu"},
	{routing, "TRTLLM-gen", `moe::dev::routing::|routing(?:DeepSeek|Renormalize|Llama4|Custom|Precomputed)::routing|` +
		`kernel_cake_deepseek_routing_`, "", "trtllmGenKernels/blockScaleMoe, flashinfer"},
	{routing, "triton_kernels",
		`_topk_forward\b|_routing_\w+|_combined_routing\w*|_sum_bitmatrix_rows|_compute_writeback_idx|` +
			`pack_bitmatrix\b`, "",
		"triton_kernels/routing_details, topk_details; vllm fused_moe/gpt_oss_triton_kernels_moe.py"},
	{routing, "TransformerEngine", `fused_topk_with_score_function_|fused_(?:score_for_)?moe_aux_loss_`, "",
		"common/fused_router"},
	{topK, "PyTorch", `at::native::(?:sb|mb)topk::\w+`, "",
		"captures: torch.topk over experts, and over the vocabulary when tokens are sampled"},
	{unknown, "PyTorch", `at::native::bitonicSortKVInPlace\b|softmax_warp_forward\b`, "",
		"captures: torch.sort and softmax, of the gate and of anything else"},

	// from routing to expert order
	{dispatch, "vLLM, SGLang",
		`(?:moe_(?:lora_)?align_(?:block_size|sum)_(?:small_batch_expert_)?kernel|batched_moe_align_block_size_kernel|` +
			`count_and_sort_expert_tokens_kernel)\b`, "", "vllm csrc/moe/moe_align_sum_kernels.cu"},
	{dispatch, "vLLM, SGLang",
		`(?:compute_problem_sizes|compute_expert_(?:blockscale_)?offsets|compute_arg_sorts|shuffleRowsKernel|` +
			`get_group_gemm_starts|apply_expert_map)\b`, "", "csrc/moe, csrc/quantization/cutlass_w8a8/moe"},
	{dispatch, "TensorRT-LLM, FlashInfer",
		`(?:fusedBuildExpertMapsSortFirstTokenKernel|(?:block|global|merge)ExpertPrefixSum(?:Large)?Kernel|` +
			`buildMinLatencyActiveExpertMapsKernel|computeStridesTmaWarpSpecializedKernel|expandInputRowsKernel|` +
			`computeFP8DequantScaleKernel)\b`, "", "cutlass_kernels/moe_gemm"},
	{combine, "TensorRT-LLM, TransformerEngine, SGLang",
		`moeUnpermuteKernel\b|moe_unpermute_kernel\b|_unpermute_kernel\b|moe_recover_topK_kernel\b|` +
			`_fwd_kernel_ep_gather\b|(?:deepep_)?post_reorder_triton_kernel`, "",
		"cute_dsl, common/permutation, ep_moe/kernels.py"},
	{dispatch, "TensorRT-LLM", `(?:moePermuteKernel|moeOutputMemsetKernel|moe::dev::permute::permuteKernel)\b`, "",
		"cute_dsl, blockScaleMoe/DevKernel.cu"},
	{dispatch, "SGLang, vLLM, TensorRT-LLM",
		`_fwd_kernel_ep_scatter_[12]\b|_count_expert_num_tokens\b|_preprocess_after_permute_kernel\b|` +
			`(?:_?masked_index_gather_kernel|_masked_index_copy_group_quant_fp8)\b|` +
			`(?:deepep_|deepgemm_)?(?:compute_src2dst|compute_seg_indptr|permute|pre_reorder)_triton_kernel`, "",
		"ep_moe/kernels.py, SGLang pull request 4643; deep_gemm_utils.py"},
	{dispatch, "TransformerEngine, grouped_gemm",
		`moe_permute_(?:topK_)?(?:kernel|row_map)\b|_permute_kernel\b|_row_id_map_pass_[123]_kernel\b|` +
			`_make_chunk_sort_map_kernel\b`, "", "common/permutation, triton/permutation.py"},
	{dispatch, "llama.cpp", `mm_ids_helper\b`, "",
		"ggml-cuda/mmid.cu; the GEMMs behind it, mul_mat_q and the like, are those of dense layers too"},
	{dispatch, "Composable Kernel, aiter", `(?:kentry|opus_moe_sorting_entry)\b`, "MoeSorting",
		"ck_tile ops/fused_moe; published traces of MI300X and MI355X"},
	{dispatch, "aiter", `_moe_mxfp4_sort_kernel\w*|_fused_dynamic_mxfp4_quant_moe_sort_kernel\b`, "",
		"aiter utility/fp4_utils.py, pull request 2414: scales of quantized tokens in the order of experts"},
	{dispatch, "TileKernels", `get_fused_mapping\b|clean_and_count_expert\b|expand_to_fused\w*`, "",
		"deepseek-ai/TileKernels tile_kernels/moe; deepseek-ai/profile-data"},
	{dispatch, "MegaBlocks",
		`_padded_copy\b|_binned_copy\b|(?:megablocks::)?(?:replicate::)?ReplicateForwardKernel\b|` +
			`(?:megablocks::)?(?:construct_indices::)?ConstructIndicesKernel\b`, "", "megablocks backend/kernels.py, csrc"},

	// grouped GEMM
	{gemm, "Triton: vLLM, SGLang", `fused_moe_kernel|batched_triton_kernel\b|grouped_gemm_triton_kernel\b`, "",
		"fused_moe.py, fused_batched_moe.py, ep_moe/kernels.py"},
	{gemm, "CUTLASS", `.*`, "::GroupProblemShape<|::MoeFCGemm",
		"captures: torch._grouped_mm; vLLM, SGLang, TensorRT-LLM, FlashInfer"},
	{gemm, "CUTLASS 2", `Kernel2?\b`, "cutlass::gemm::kernel::GemmGrouped<",
		"cutlass gemm/kernel/gemm_grouped.h; Megatron's grouped_gemm"},
	{gemm, "DeepSeek", `device_kernel\b`, "dpsk::grouped_gemm::cuda::m_grouped|dpsk::grouped_gemm::cuda::k_grouped",
		"deepseek-ai/profile-data"},
	{other, "DeepSeek", `device_kernel\b`, "dpsk::grouped_gemm::",
		"deepseek-ai/profile-data: dense by m_grouped's absence"},
	{gemm, "TensorRT-LLM, FlashInfer", `fused_moe::run_global\b|.*\bMoeFCGemm`, "",
		"fused_moe_kernel.cuh, moe_cutlass_kernel.h"},
	{experts, "PyTorch", `at::cuda::detail::prepare_grouped_gemm_data\b`, "", "captures: torch._grouped_mm"},
	{attention, "DeepGEMM", `deep_gemm::.*mqa_logits`, "", "deep_gemm/impls: sparse attention's indexer"},
	{gemm, "DeepGEMM", `deep_gemm::\w*[mk]_grouped_\w*`, "", "deep_gemm/impls, by name"},
	{gemm, "DeepGEMM", `deep_gemm::\w*gemm\w*`,
		`deep_gemm::GemmType\)[12356]`,
		"deep_gemm/impls: grouped, by GemmType"},
	{other, "DeepGEMM", `deep_gemm::\w*gemm\w*`, `deep_gemm::GemmType\)[04]`,
		"deep_gemm/impls: dense or batched, by GemmType"},
	{unknown, "DeepGEMM", `deep_gemm::\w*gemm\w*`, "", "deep_gemm/impls: without GemmType, grouped or dense"},
	{gemm, "TRTLLM-gen", `bmm_[A-Z]\w*_t\d+x\d+x\d+|MoE_Proj(?:Up|Down)_BatchN_|BatchedGemmKernel_BatchN_`, "",
		"trtllmGenKernels/batchedGemm cubins"},
	{gemm, "CuTe DSL", `\w*contiguous_grouped_gemm_(?:swiglu|finalize)_fusion|cute_dsl_kernels\w*grouped_gemm`, "",
		"TensorRT-LLM cute_dsl_kernels/blackwell"},
	{gemm, "vLLM, SGLang", `marlin_moe_wna16::Marlin\b|moe_wna16_gemm_kernel\b`, "",
		"csrc/moe/marlin_moe_wna16, moe_wna16.cu"},
	{gemm, "Composable Kernel, aiter", `kentry\b`, "MoeFlatmmKernel|FusedMoeGemmKernel|ck_tile::GroupedGemmKernel",
		"ck_tile ops/flatmm, fused_moe, gemm; published profiles of gpt-oss on MI355X and of Primus Turbo"},
	{gemm, "Composable Kernel, aiter", `kernel_moe_(?:mx)?gemm\w*|fmoe_\w+`, "",
		"ck gridwise_moe_gemm, aiter hsa/*/fmoe; published traces of MI300X and MI355X"},
	{gemm, "triton_kernels", `_p?_?matmul_ogs\w*`, "", "triton_kernels/matmul_ogs_details"},
	{unknown, "triton_kernels", `_p?_?matmul(?:_N[NT]{2}_\w+)?$`, "", "triton_kernels/matmul: routed and dense"},
	{gemm, "MegaBlocks", `_sdd_kernel\b|_dsd_kernel\b|_dds_kernel\b`, "",
		"stk backend/triton_kernels.py: block-sparse GEMMs of dropless experts"},
	{gemm, "Triton, CuTe DSL", `_kernel_grouped_gemm\w*|\w*grouped_gemm_masked\w*`, "",
		"torchtitan experiments/kernels, flashinfer grouped_gemm_masked_blackwell"},
	{experts, "vLLM", `moe_bgmv_(?:shrink|expand)_sliced_kernel\b|_fused_moe_lora_kernel\b`, "", "LoRA of experts"},
	{gemm, "TensorRT", `__myl_MoEFc[12]_\w+`, "",
		"TensorRT 11's MoE layer on SM 10: nsys of NVIDIA/TensorRT-Model-Connect pull request 1066"},
	{experts, "TransformerEngine", `setup_grouped_gemm_kernel\b`, "", "common/gemm/cublaslt_grouped_gemm.cu"},
	{dispatchAndMoE, "Flux", `\w*moe_ag_scatter\w*`, "", "flux src/moe_ag_scatter"},
	{moeAndCombine, "Flux", `\w*moe_gather_rs\w*`, "", "flux src/moe_gather_rs"},

	// between and after the GEMMs
	{experts, "TensorRT-LLM, TRTLLM-gen, SGLang, vLLM",
		`do(?:Gated)?ActivationKernel\b|moeActivationKernel\b|moe::dev::activation::|` +
			`_silu_and_mul_post_quant_kernel\b|_silu_mul_per_token_group_quant_\w+|` +
			`_?silu_mul_fp8_quant_deep_gemm\w*|cvt_fp16_to_fp4_expert`, "",
		"cutlass_kernels/moe_gemm, blockScaleMoe/DevKernel.cu, ep_moe/kernels.py, vllm fused_moe/deep_gemm_moe.py"},
	{other, "norms", `triton_(?:poi|per|red)_fused_\w*(?:rms_norm|mean\w*rsqrt)`, "",
		"captures: PyTorch Inductor's name lists what it fuses, the operator that reads the norm among them"},
	{attention, "PyTorch Inductor", `triton_(?:poi|per)_fused_\w*mul_neg_(?:slice|split)\w*`, "",
		"captures: rotary embedding of DeepSeek-V3, halves negated and stacked"},
	{unknown, "activation and quantization",
		`act_and_mul_kernel\b|silu_and_mul_(?:per_block_quant_)?kernel\b|silu_mul_quant_varlen_kernel\b|` +
			`swigluoai_and_mul_kernel\b|deep_gemm::transpose_fp32\b|per_token_group_quant_8bit_kernel|` +
			`_per_token_quant_and_transform_kernel|quantize_with_block_size\b|cvt_fp16_to_fp4|scale_1x128_kernel\b|` +
			`deep_gemm::transpose_\w*pack|_static_quant_fp8\b|dynamic_per_(?:group|token)_scaled_\w*quant\w*|` +
			`triton_(?:poi|per|red)_fused_`, "",
		"vLLM, SGLang, TensorRT-LLM, PyTorch Inductor: for routed experts and for everything else"},
	{combine, "TensorRT-LLM, TRTLLM-gen", `finalizeMoeRouting(?:NoFilling)?Kernel\b|moe::dev::finalize::`, "",
		"cutlass_kernels/moe_gemm, blockScaleMoe/DevKernel.cu"},
	{combine, "TileKernels", `reduce_fused_impl\b`, "",
		"deepseek-ai/TileKernels tile_kernels/moe; deepseek-ai/profile-data"},
	{combine, "vLLM, SGLang, triton_kernels",
		`_?moe_sum_(?:reduce_|vec_)?kernel|apply_shuffle_mul_sum_kernel\b|_reduce_grouped\b|_finalize_matmul`, "",
		"moe_align_sum_kernels.cu, sgl-kernel/csrc/moe, matmul_ogs_details"},

	// attention
	{attention, "FlashAttention, CUTLASS", `device_kernel\b`,
		"flash::enable_sm|flash::FlashAttnFwd|FlashAttnFwdSm|flash::FlashAttnBwd|cutlass::fmha::",
		"flash-attention hopper; cutlass fmha"},
	{attention, "FlashAttention, FlashMLA", `(?:pytorch_)?flash::\w+|flash_fwd_\w+|flash_mla_\w+`, "",
		"flash-attention csrc, FlashMLA csrc"},
	{attention, "FlashInfer",
		`flashinfer::(?:Batch|Single)(?:Prefill|Decode)With\w+|(?:Batch|Single)(?:Prefill|Decode)With\w+Kernel\b|` +
			`BatchMLA\w+Kernel\b|(?:PersistentVariableLength)?MergeStates?\w*Kernel\b|AppendPagedKVCache\w*Kernel\b`, "",
		"flashinfer include/flashinfer/attention, page.cuh"},
	{attention, "TensorRT-LLM, FlashInfer, PyTorch",
		`fmhaSm\d+\w*Kernel_|fmhaReductionKernel\b|fmha_v2_\w+|fmha_cutlassF_\w+|` +
			`cudnn_generated_fort_native_sdpa_\w+|(?:masked_)?multihead_attention_kernel\b|applyMLARope\w*|` +
			`applyBiasRopeUpdateKVCache\w*`, "", "trtllmGenKernels/fmha, fmha_v2, unfusedAttentionKernels"},
	{attention, "vLLM, SGLang", `paged_attention_v[12]_(?:reduce_)?kernel\b|reshape_and_cache\w*|` +
		`concat_and_cache_mla\w*_kernel\b|merge_attn_states_kernel\b|\w*rotary_embedding_kernel\b|` +
		`set_mla_kv_buffer_kernel\b`, "", "csrc/attention, cache_kernels.cu, pos_encoding_kernels.cu"},
	{attention, "flash-linear-attention: vLLM, SGLang",
		`chunk_(?:gated_delta|fwd_kernel|scaled_dot_kkt)\w*|fused_recurrent_\w+|_?causal_conv1d_\w+`, "",
		"fla/ops, causal_conv1d.py: linear attention"},
	{attention, "llama.cpp, TensorRT-LLM", `flash_attn_(?:ext|tile|vec_ext)\w*|kernel_mha\b|xqa_kernel_\w+`, "",
		"ggml-cuda/fattn*.cuh; xqa cubins"},
	{attention, "Triton: vLLM, SGLang", `kernel_unified_attention(?:_[23]d)?\b|reduce_segments\b|` +
		`_fwd_(?:grouped_)?kernel_stage[12]\b`, "",
		"triton_unified_attention.py, triton_decode_attention.py"},
	{attention, "PyTorch Inductor", `triton_tem_fused_\w*flex_attention\w*`, "",
		"torch _inductor/kernel/flex_attention.py"},
	{attention, "Composable Kernel", `kentry\b`, "ck_tile::Fmha", "ck_tile ops/fmha; published traces of MI300X"},
	{attention, "vLLM, aiter", `paged_attention_ll4mi_\w+`, "", "vllm csrc/rocm/attention.cu"},
	{attention, "aiter", `mla_(?:a\d+w\d+|dec|pfl)_\w+|kn_mla_reduce_v1\w*`, "",
		"aiter hsa/*/mla, csrc/kernels/mla; profiles of MI325X and MI355X in InferenceX issue 863"},

	// the rest of the model
	{other, "norms", `(?:vllm::|flashinfer::norm::|tensorrt_llm::kernels::)?(?:fused_add_)?(?:rms_norm\w*_kernel|` +
		`RMSNorm\w*Kernel|FusedAddRMSNorm\w*Kernel|generalRmsNorm|generalLayerNorm)\b`, "",
		"vllm csrc/layernorm_kernels.cu, flashinfer norm.cuh"},
	{other, "norms", `kentry\b`, "ck_tile::Rmsnorm2dFwd", "ck_tile ops/rmsnorm2d; published traces of MI300X"},
	{other, "norms", `add_rmsnorm_\w+`, "", "aiter; published traces of MI300X"},
	{other, "norms", `layer_norm::ln_\w+`, "", "flash-attention csrc/layer_norm; deepseek-ai/profile-data"},
	{other, "hipBLASLt, Composable Kernel, aiter, PyTorch Inductor",
		`Cijk_\w+|kernel_gemm_xdl_cshuffle\w*|hgemm_\w+|_gemm_a(?:\d+|fp4)_?w(?:\d+|fp4)_\w+|` +
			`triton_tem_fused_\w*mm_\w+`, "",
		"published traces of MI300X and MI355X; torch _inductor/kernel/mm.py: dense GEMM of anything"},
	{other, "TensorRT", `(?:sm\d+_xmma|trt_\w+?)_fprop_\w+|\w+_trt$`, "",
		"TensorRT tactics: dense GEMM and convolution of anything"},
	{other, "cuBLAS",
		`nvjet_\w+|cublasLt::splitKreduce_kernel\b|(?:cublasGemv|gemv2[TN]|gemvx::|gemvNSP)\w*|(?:cutlass_\d+|` +
			`sm\d+_xmma|ampere|turing|volta|maxwell)_\w*gemm\w*`, "", "captures; dense GEMM of anything"},
	{other, "CUTLASS", `device_kernel\b|Kernel2?\b`, `cutlass::gemm::kernel::|gemm_|::DeviceGemm\w+Sm`,
		"GemmUniversal without GroupProblemShape, DeviceGemmFp4GemmSm100 of TensorRT-LLM: dense"},
	{unknown, "PyTorch, CUB", `at::(?:native|cuda)::\w+|(?:at_cuda_detail::)?cub::\w+`, "",
		"captures: elementwise, indexing, sorting and reducing, for anything"},
}
