package kernel

import "github.com/moebalance/moebalance/compare/steps"

// Classes of kernels; the last ones fuse several phases.
var (
	routing    = Class{Phase: PhaseRouter}
	topK       = Class{Phase: PhaseUnknown, Launch: steps.Launch{Anchor: steps.Router}} // of experts or of anything else
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

	mayBeExperts = Class{Phase: PhaseUnknown, MayBeExperts: true}

	allOfMoE = Class{Phase: PhaseExperts, Collective: true,
		Fused: []Phase{PhaseDispatch, PhaseExperts, PhaseCombine}}
	routingAndMoE   = Class{Phase: PhaseExperts, Collective: true, Fused: []Phase{PhaseRouter, PhaseExperts}}
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
	// deep_gemm/impls
	{allOfMoE, "DeepGEMM", `\w*_mega_moe_impl\b`, ""},
	// FlashInfer and TensorRT-LLM, MegaMoECuteDsl: fc1fc2_kernel_impl with the exchange in it
	{allOfMoE, "CuTe DSL", `kernel_cutlass_\w*(?i:mega_?moe)`, ""},
	// flashinfer monomoe: routing, both GEMMs and the sum
	{routingAndMoE, "FlashInfer, vLLM", `(?:moe_monokernel|monomoe)::|moe_kernel_topk\b`, ""},
	// kernels/communicationKernels/moeAllReduceFusionKernels.cu
	{combineAndShare, "TensorRT-LLM", `moe(?:finalize|reduce)_allreduce_fusion_kernel`, ""},

	// exchange of tokens between ranks
	// deep_ep csrc/kernels, elastic, branch hybrid-ep
	{collective, "DeepEP", deepEP + `(?:(?:barrier_impl|cached_notify|device_sync_kernel)\b|clean_low_latency_buffer)`,
		""},
	// deep_ep csrc/kernels/layout.cu, elastic
	{dispatch, "DeepEP", deepEP + `(?:get_dispatch_layout|dispatch_copy_epilogue_impl)`, ""},
	// deep_ep elastic
	{combine, "DeepEP", deepEP + `combine_reduce_epilogue_impl`, ""},
	// deep_ep csrc/kernels/{intranode,internode,internode_ll}.cu, forks' suffixes; deepseek-ai/profile-data
	{sends, "DeepEP", deepEP + `(?:cached_notify_|notify_|hybrid_)?dispatch`, ""},
	// deep_ep csrc/kernels/{intranode,internode,internode_ll}.cu
	{returns, "DeepEP", deepEP + `(?:cached_notify_|notify_|hybrid_)?combine`, ""},
	// kernels/communicationKernels/moeAlltoAllKernels.cu
	{sends, "TensorRT-LLM", `moeA2ADispatchKernel\b`, ""},
	// kernels/communicationKernels/moeAlltoAllKernels.cu
	{returns, "TensorRT-LLM", `moeA2ACombineKernel\b`, ""},
	// kernels/communicationKernels/moeAlltoAllKernels.cu
	{combine, "TensorRT-LLM", `moeA2APrepareCombineKernel\b`, ""},
	// kernels/fusedMoeCommKernels.cu
	{sends, "TensorRT-LLM, FlashInfer", `moe_comm::moeAllToAllKernel\b`, ""},
	// kernels/moeCommKernels.cu, moePrepareKernels.cu
	{collective, "TensorRT-LLM", `(?:moeAllToAllKernel|allToAllMetadataDevice)\b`, ""},
	// kernels/moeCommKernels.cu, moePrepareKernels.cu, communicationKernels/moeAlltoAllKernels.cu
	{dispatch, "TensorRT-LLM",
		`(?:moeA2A(?:PrepareDispatch|SanitizeExpertIds)Kernel|compute(?:CountAndIndice|Cumsum)Device|moveIndiceDevice|` +
			`memsetExpertIdsDevice|computeSendRecv(?:RankCount|Indices)Kernel|inplaceSendRecvRankCumSumKernel|` +
			`moeLocalGatherDevice)\b`, ""},
	// pplx-kernels csrc/all_to_all
	{sends, "pplx", `pplx::.*\bdispatchKernel\b`, ""},
	// pplx-kernels csrc/all_to_all
	{returns, "pplx", `pplx::.*\bcombineKernel\b`, ""},
	// nccl contrib/nccl_ep
	{sends, "NCCL EP", `nccl_ep::.*[dD]ispatch`, ""},
	// nccl contrib/nccl_ep
	{returns, "NCCL EP", `nccl_ep::.*[cC]ombine`, ""},
	// mori src/ops/dispatch_combine
	{sends, "MORI", `(?:mori::moe::)?EpDispatch\w*`, ""},
	// mori src/ops/dispatch_combine
	{returns, "MORI", `(?:mori::moe::)?EpCombine\w*`, ""},
	// captures; nccl src/device, symmetric
	{collective, "NCCL", `nccl(?:Symk)?(?:Dev)?Kernel`, ""},
	// csrc/custom_all_reduce.cuh
	{collective, "vLLM, SGLang", `cross_device_reduce_[12]stage\b`, ""},
	// kernels/communicationKernels, kernels/customAllReduceKernels.cu
	{collective, "TensorRT-LLM, FlashInfer",
		`allreduce_fusion_kernel_\w+|(?:one|two)[sS]hotAll[rR]educe\w*Kernel\b|lamport_\w+|rmsNormLamport\b`, ""},
	// torch csrc/distributed/c10d/symm_mem/CUDASymmetricMemory*.cu
	{collective, "PyTorch",
		`(?:multimem|(?:one|two)_shot)_all_(?:reduce|gather)_kernel\w*|multimem_one_shot_all_reduce_kernel\b|` +
			`symmetric_memory::(?:barrier|put_signal|wait_signal)_kernel\b`, ""},
	// csrc/quickreduce/quick_reduce.h
	{collective, "vLLM, SGLang", `(?:quickreduce::)?allreduce_prototype_(?:one|two)shot\b`, ""},
	// nvshmem src/host/stream/coll/barrier
	{collective, "NVSHMEM", `(?:barrier|sync)(?:_all)?_on_stream_kernel\w*|nvshmem\w*`, ""},

	// gate
	// flashinfer gemm/dsv3_router_gemm.cuh, csrc/tinygemm2.cu; vllm csrc/moe
	{routing, "FlashInfer, vLLM", `\w*router_gemm\w*|tinygemm_kernel\b`, ""},
	// dsv3_fused_a_gemm: the projections before MLA
	{attention, "TensorRT-LLM, vLLM, SGLang", `fused_a_gemm_kernel\b`, ""},
	// vllm csrc/moe/topk_softmax_kernels.cu
	{routing, "vLLM, SGLang, TensorRT-LLM", `topkGating\w*|topk_gating_softmax|moeSoftmax\b|moeTopK\b|moeSigmoid\b`, ""},
	// vllm csrc/moe/grouped_topk_kernels.cu, fused_moe/router/base_router.py
	{routing, "vLLM", `grouped_topk_fused\w*|topk_with_k2_kernel|group_idx_and_topk_idx_kernel|` +
		`_eplb_map_and_record_i32_kernel\b`, ""},
	// deepseek-ai/TileKernels tile_kernels/moe; deepseek-ai/profile-data
	{routing, "TileKernels", `topk_sum_and_topk_idx\b|aux_fi_impl\b`, ""},
	// sgl-kernel/csrc/moe
	{routing, "SGLang", `(?:kimi_k2_)?moe_fused_gate_kernel|moe_hash_topk_fused`, ""},
	// aiter csrc/kernels/topk_softmax_kernels_group.cu
	{routing, "aiter", `grouped_topk_(?:opt_sort_)?kernel\b`, ""},
	// ggml-cuda/topk-moe.cu
	{routing, "llama.cpp", `topk_moe_cuda\b`, ""},
	// kernels/customMoeRoutingKernels.cu, noAuxTcKernels.cu; traces of Qwen3-30B-A3B
	{routing, "TensorRT-LLM", `(?:customMoeRoutingKernel|deepseek_v3_topk_kernel)\b`, ""},
	// trtllmGenKernels/blockScaleMoe, flashinfer
	{routing, "TRTLLM-gen", `moe::dev::routing::|routing(?:DeepSeek|Renormalize|Llama4|Custom|Precomputed)::routing|` +
		`kernel_cake_deepseek_routing_`, ""},
	// triton_kernels/routing_details, topk_details; vllm fused_moe/gpt_oss_triton_kernels_moe.py
	{routing, "triton_kernels",
		`_topk_forward\b|_routing_\w+|_combined_routing\w*|_sum_bitmatrix_rows|_compute_writeback_idx|` +
			`pack_bitmatrix\b`, ""},
	// captures: torch.topk over experts, and over the vocabulary when tokens are sampled
	{topK, "PyTorch", `at::native::(?:sb|mb)topk::\w+`, ""},
	// captures: torch.sort and softmax, of the gate and of anything else
	{unknown, "PyTorch", `at::native::bitonicSortKVInPlace\b|softmax_warp_forward\b`, ""},

	// from routing to expert order
	// vllm csrc/moe/moe_align_sum_kernels.cu, csrc/quantization/cutlass_w8a8/moe
	{dispatch, "vLLM, SGLang",
		`(?:moe_(?:lora_)?align_(?:block_size|sum)_(?:small_batch_expert_)?kernel|batched_moe_align_block_size_kernel|` +
			`count_and_sort_expert_tokens_kernel|compute_(?:problem_sizes(?:_from_expert_offsets)?|arg_sorts|` +
			`expert_(?:blockscale_)?offsets)|shuffleRowsKernel|_*get_group_gemm_starts|apply_expert_map)\b`, ""},
	// cutlass_kernels/moe_gemm
	{dispatch, "TensorRT-LLM, FlashInfer",
		`(?:fusedBuildExpertMapsSortFirstTokenKernel|(?:block|global|merge)ExpertPrefixSum(?:Large)?Kernel|` +
			`buildMinLatencyActiveExpertMapsKernel|computeStridesTmaWarpSpecializedKernel|expandInputRowsKernel|` +
			`computeFP8DequantScaleKernel|computeExpertFirstTokenOffsetKernel)\b`, ""},
	// cute_dsl, common/permutation, ep_moe/kernels.py
	{combine, "TensorRT-LLM, SGLang",
		`moeUnpermuteKernel\b|moe_unpermute_kernel\b|_unpermute_kernel\b|moe_recover_topK_kernel\b|` +
			`_fwd_kernel_ep_gather\b|(?:deepep_)?post_reorder_triton_kernel`, ""},
	// cute_dsl, blockScaleMoe/DevKernel.cu
	{dispatch, "TensorRT-LLM", `(?:moePermuteKernel|moeOutputMemsetKernel|moe::dev::permute::permuteKernel)\b`, ""},
	// ep_moe/kernels.py, SGLang pull request 4643; deep_gemm_utils.py
	{dispatch, "SGLang, vLLM, TensorRT-LLM",
		`_fwd_kernel_ep_scatter_[12]\b|_count_expert_num_tokens\b|_preprocess_after_permute_kernel\b|` +
			`(?:_?masked_index_gather_kernel|_masked_index_copy_group_quant_fp8)\b|` +
			`(?:deepep_|deepgemm_)?(?:compute_src2dst|compute_seg_indptr|permute|pre_reorder)_triton_kernel`, ""},
	// ggml-cuda/mmid.cu; the GEMMs behind it, mul_mat_q and the like, dense layers run too
	{dispatch, "llama.cpp", `mm_ids_helper\b`, ""},
	// ck_tile ops/fused_moe; published traces of MI300X and MI355X
	{dispatch, "Composable Kernel, aiter", `(?:kentry|opus_moe_sorting_entry)\b`, "MoeSorting"},
	// aiter utility/fp4_utils.py, pull request 2414: scales of quantized tokens in the order of experts
	{dispatch, "aiter", `_moe_mxfp4_sort_kernel\w*|_fused_dynamic_mxfp4_quant_moe_sort_kernel\b`, ""},
	// deepseek-ai/TileKernels tile_kernels/moe; deepseek-ai/profile-data
	{dispatch, "TileKernels", `get_fused_mapping\b|clean_and_count_expert\b|expand_to_fused\w*`, ""},

	// grouped GEMM
	// fused_moe.py, fused_batched_moe.py, ep_moe/kernels.py
	{gemm, "Triton: vLLM, SGLang", `fused_moe_kernel|batched_triton_kernel\b|grouped_gemm_triton_kernel\b`, ""},
	// captures: torch._grouped_mm, vLLM in FP8; SGLang, TensorRT-LLM, FlashInfer
	{gemm, "CUTLASS", `.*`, `::GroupProblemShape<|::MoeFCGemm|\bcutlass_3x_group_gemm<`},
	// cutlass gemm/kernel/gemm_grouped.h; Megatron's grouped_gemm
	{gemm, "CUTLASS 2", `Kernel2?\b`, "cutlass::gemm::kernel::GemmGrouped<"},
	// deepseek-ai/profile-data
	{gemm, "DeepSeek", `device_kernel\b`, "dpsk::grouped_gemm::cuda::m_grouped|dpsk::grouped_gemm::cuda::k_grouped"},
	// deepseek-ai/profile-data: dense by m_grouped's absence
	{other, "DeepSeek", `device_kernel\b`, "dpsk::grouped_gemm::"},
	// fused_moe_kernel.cuh, moe_cutlass_kernel.h
	{gemm, "TensorRT-LLM, FlashInfer", `fused_moe::run_global\b|.*\bMoeFCGemm`, ""},
	// captures: torch._grouped_mm; TransformerEngine: cuBLAS grouped
	{experts, "PyTorch", `at::cuda::detail::prepare_grouped_gemm_data\b|setup_grouped_gemm_kernel\b`, ""},
	// deep_gemm/impls: sparse attention's indexer
	{attention, "DeepGEMM", `deep_gemm::.*mqa_logits`, ""},
	// deep_gemm/impls, by name
	{gemm, "DeepGEMM", `deep_gemm::\w*[mk]_grouped_\w*`, ""},
	// deep_gemm/impls: grouped, by GemmType
	{gemm, "DeepGEMM", `deep_gemm::\w*gemm\w*`, `deep_gemm::GemmType\)[12356]`},
	// deep_gemm/impls: dense or batched, by GemmType
	{other, "DeepGEMM", `deep_gemm::\w*gemm\w*`, `deep_gemm::GemmType\)[04]`},
	// deep_gemm/impls: without GemmType, grouped or dense
	{unknown, "DeepGEMM", `deep_gemm::\w*gemm\w*`, ""},
	// trtllmGenKernels/batchedGemm cubins
	{gemm, "TRTLLM-gen", `bmm_[A-Z]\w*_t\d+x\d+x\d+|MoE_Proj(?:Up|Down)_BatchN_|BatchedGemmKernel_BatchN_`, ""},
	// TensorRT-LLM cute_dsl_kernels/blackwell; pull request 18357
	{gemm, "CuTe DSL", `\w*contiguous_grouped_gemm\w*|cute_dsl_kernels\w*grouped_gemm|\w*moe_as_dense_gemm\w*`, ""},
	// csrc/moe/marlin_moe_wna16, moe_wna16.cu; csrc/quantization/gguf: SGLang pull request 14544
	{gemm, "vLLM, SGLang", `marlin_moe_wna16::Marlin\b|moe_wna16_gemm_kernel\b|moe_q\d_\w+|moe_vec_q\w*`, ""},
	// ck_tile ops/flatmm, fused_moe, gemm; published profiles of gpt-oss on MI355X and of Primus Turbo
	{gemm, "Composable Kernel, aiter", `kentry\b`, "MoeFlatmmKernel|FusedMoeGemmKernel|ck_tile::GroupedGemmKernel"},
	// ck gridwise_moe_gemm, aiter hsa/*/fmoe; published traces of MI300X and MI355X
	{gemm, "Composable Kernel, aiter", `kernel_moe_(?:mx)?gemm\w*|fmoe_\w+`, ""},
	// triton_kernels/matmul_ogs_details
	{gemm, "triton_kernels", `_p?_?matmul_ogs\w*`, ""},
	// triton_kernels/matmul: routed and dense
	{mayBeExperts, "triton_kernels", `_p?_?matmul(?:_N[NT]{2}_\w+)?$`, ""},
	// captures: routed and dense
	{mayBeExperts, "Humming", `humming$`, ""},
	// torchtitan experiments/kernels, flashinfer grouped_gemm_masked_blackwell, torch _inductor/kernel/mm_grouped.py;
	// huggingface/kernels-community finegrained-fp8: w8a8_block_dynamic_fp8_matmul_grouped_kernel
	{gemm, "Triton, CuTe DSL", `_kernel_grouped_gemm\w*|\w*grouped_gemm_masked\w*|triton_tem_fused_\w*grouped_mm\w*|` +
		`\w*(?:group(?:ed)?_(?:gemm|mm)|moe_gemm)\w*_kernel\b|(?:w\d+a\d+|mxfp)_\w*matmul_grouped_kernel\b|nvjet_\w*grouped`,
		""},
	// LoRA of experts
	{experts, "vLLM", `moe_bgmv_(?:shrink|expand)_sliced_kernel\b|_fused_moe_lora_kernel\b`, ""},
	// TensorRT 11's MoE layer on SM 10: nsys of NVIDIA/TensorRT-Model-Connect pull request 1066
	{gemm, "TensorRT", `__myl_MoEFc[12]_\w+`, ""},

	// between and after the GEMMs
	// cutlass_kernels/moe_gemm, blockScaleMoe/DevKernel.cu, ep_moe/kernels.py, vllm fused_moe/deep_gemm_moe.py
	{experts, "TensorRT-LLM, TRTLLM-gen, SGLang, vLLM",
		`do(?:Gated)?ActivationKernel\b|moeActivationKernel\b|moe::dev::activation::|` +
			`_silu_and_mul_post_quant_kernel\b|_silu_mul_per_token_group_quant_\w+|` +
			`_?silu_mul_fp8_quant_deep_gemm\w*|cvt_fp16_to_fp4_expert`, ""},
	// captures: PyTorch Inductor's name lists what it fuses, the operator that reads the norm among them
	{other, "norms", `triton_(?:poi|per|red)_fused_\w*(?:rms_norm|mean\w*rsqrt)`, ""},
	// captures: what quantizes for a dense GEMM
	{other, "PyTorch Inductor", `triton_(?:poi|per|red)_fused_\w*cutlass_\w+_mm`, ""},
	// captures: rotary embedding of DeepSeek-V3, halves negated and stacked
	{attention, "PyTorch Inductor", `triton_(?:poi|per)_fused_\w*mul_neg_(?:slice|split)\w*`, ""},
	// vLLM, SGLang, TensorRT-LLM, PyTorch Inductor: for routed experts and for everything else
	{unknown, "activation and quantization",
		`act_and_mul_kernel\b|silu_and_mul_(?:per_block_quant_)?kernel\b|silu_mul_quant_varlen_kernel\b|` +
			`swigluoai_and_mul_kernel\b|deep_gemm::transpose_fp32\b|_?per_token_(?:group_)?quant_\w+|` +
			`quantize_with_block_size\b|cvt_fp16_to_fp4|scale_1x128_kernel\b|` +
			`deep_gemm::transpose_\w*pack|_static_quant_fp8\b|(?:dynamic_(?:per_(?:group|token)_)?)?scaled_\w*quant\w*|` +
			`triton_(?:poi|per|red)_fused_`, ""},
	// cutlass_kernels/moe_gemm, blockScaleMoe/DevKernel.cu; pull request 14592
	{combine, "TensorRT-LLM, TRTLLM-gen",
		`finalizeMoeRouting(?:NoFilling)?Kernel\b|moe::dev::finalize::|\w*gather_finalize\w*`, ""},
	// deepseek-ai/TileKernels tile_kernels/moe; deepseek-ai/profile-data
	{combine, "TileKernels", `reduce_fused_impl\b`, ""},
	// moe_align_sum_kernels.cu, sgl-kernel/csrc/moe, matmul_ogs_details
	{combine, "vLLM, SGLang, triton_kernels",
		`_?moe_(?:fused_mul_)?sum_(?:reduce_|vec_|vec_dynamic_)?kernel|apply_shuffle_mul_sum_kernel\b|_reduce_grouped\b|` +
			`_finalize_matmul`, ""},

	// attention
	// flash-attention hopper; cutlass fmha
	{attention, "FlashAttention, CUTLASS", `device_kernel\b`,
		"flash::enable_sm|flash::FlashAttnFwd|FlashAttnFwdSm|flash::FlashAttnBwd|cutlass::fmha::"},
	// flash-attention csrc, FlashMLA csrc
	{attention, "FlashAttention, FlashMLA", `(?:pytorch_)?flash::\w+|flash_fwd_\w+|flash_mla_\w+`, ""},
	// flashinfer include/flashinfer/attention, page.cuh
	{attention, "FlashInfer",
		`flashinfer::(?:Batch|Single)(?:Prefill|Decode)With\w+|(?:Batch|Single)(?:Prefill|Decode)With\w+Kernel\b|` +
			`BatchMLA\w+Kernel\b|(?:PersistentVariableLength)?MergeStates?\w*Kernel\b|AppendPagedKVCache\w*Kernel\b`, ""},
	// trtllmGenKernels/fmha, fmha_v2, unfusedAttentionKernels
	{attention, "TensorRT-LLM, FlashInfer, PyTorch",
		`fmhaSm\d+\w*Kernel_|fmhaReductionKernel\b|fmha_v2_\w+|fmha_cutlassF_\w+|` +
			`cudnn_generated_fort_native_sdpa_\w+|(?:masked_)?multihead_attention_kernel\b|applyMLARope\w*|` +
			`applyBiasRopeUpdateKVCache\w*`, ""},
	// csrc/attention, cache_kernels.cu, pos_encoding_kernels.cu; sglang/jit_kernel
	{attention, "vLLM, SGLang", `paged_attention_v[12]_(?:reduce_)?kernel\b|reshape_and_cache\w*|` +
		`concat_and_cache_mla\w*_kernel\b|merge_attn_states_kernel\b|\w*rotary_embedding_kernel\b|` +
		`set_mla_kv_buffer_kernel\b|fused_rope_(?:store_)?kernel\b|fused_qknorm_\w+|store_kvcache\b`, ""},
	// fla/ops, mamba/ops, causal_conv1d.py: linear attention and state space models
	{attention, "flash-linear-attention, Mamba: vLLM, SGLang",
		`chunk_(?:gated_delta|fwd_kernel|scaled_dot_kkt|kda|gla|local_cumsum)\w*|fused_recurrent_\w+|kda_gate_\w+|` +
			`recompute_w_u_fwd\w*|merge_\d+x\d+_to_\w+_inverse\w*|fused_sigmoid_gating_delta_rule\w*|` +
			`l2norm_fwd\w*|_?causal_conv1d_\w+|_fused_post_conv_kernel\b|_?selective_scan_\w+|` +
			`_(?:chunk_scan|chunk_state|chunk_cumsum|state_passing|bmm_chunk)_fwd_kernel\b`, ""},
	// ggml-cuda/fattn*.cuh; xqa cubins
	{attention, "llama.cpp, TensorRT-LLM", `flash_attn_(?:ext|tile|vec_ext)\w*|kernel_mha\b|xqa_kernel_\w+`, ""},
	// triton_unified_attention.py, triton_decode_attention.py, extend_attention.py, prefix_prefill.py
	{attention, "Triton: vLLM, SGLang", `kernel_unified_attention(?:_[23]d)?\b|reduce_segments\b|` +
		`_fwd_(?:grouped_)?kernel_stage[12]\b|_fwd_kernel$`, ""},
	// torch _inductor/kernel/flex_attention.py
	{attention, "PyTorch Inductor", `triton_tem_fused_\w*flex_attention\w*`, ""},
	// ck_tile ops/fmha; published traces of MI300X
	{attention, "Composable Kernel", `kentry\b`, "ck_tile::Fmha"},
	// vllm csrc/rocm/attention.cu
	{attention, "vLLM, aiter", `paged_attention_ll4mi_\w+`, ""},
	// aiter hsa/*/mla, csrc/kernels/mla; profiles of MI325X and MI355X in InferenceX issue 863
	{attention, "aiter", `mla_(?:a\d+w\d+|dec|pfl)_\w+|kn_mla_reduce_v1\w*`, ""},

	// the rest of the model
	// vllm csrc/layernorm_kernels.cu, flashinfer norm.cuh; aiter, published traces of MI300X; flash-attention
	// csrc/layer_norm, deepseek-ai/profile-data
	{other, "norms", `(?:(?:fused_add_)?(?:rms_norm\w*_kernel|RMSNorm\w*Kernel|FusedAddRMSNorm\w*Kernel|` +
		`generalRmsNorm|generalLayerNorm)|add_rmsnorm_\w+|layer_norm::ln_\w+)\b`, ""},
	// ck_tile ops/rmsnorm2d; published traces of MI300X
	{other, "norms", `kentry\b`, "ck_tile::Rmsnorm2dFwd"},
	// published traces of MI300X and MI355X; torch _inductor/kernel/mm.py; SGLang's fp8_kernel.py: dense GEMM of anything
	{other, "hipBLASLt, Composable Kernel, aiter, PyTorch Inductor",
		`Cijk_\w+|_w\d+a\d+_\w+|kernel_gemm_xdl_cshuffle\w*|hgemm_\w+|_gemm_a(?:\d+|fp4)_?w(?:\d+|fp4)_\w+|` +
			`triton_tem_fused_\w*mm_\w+`, ""},
	// TensorRT tactics: dense GEMM and convolution of anything
	{other, "TensorRT", `(?:sm\d+_xmma|trt_\w+?)_fprop_\w+|\w+_trt$`, ""},
	// captures; dense GEMM of anything
	{other, "cuBLAS",
		`nvjet_\w+|cublasLt::splitKreduce_kernel\b|(?:cublasGemv|gemv2[TN]|gemvx::|gemvNSP)\w*|(?:cutlass_\d+|` +
			`sm\d+_xmma|ampere|turing|volta|maxwell)_\w*gemm\w*`, ""},
	// GemmUniversal without GroupProblemShape, DeviceGemmFp4GemmSm100 of TensorRT-LLM: dense
	{other, "CUTLASS", `device_kernel\b|Kernel2?\b`, `cutlass::gemm::kernel::|gemm[_<]|::DeviceGemm\w+Sm`},
	// captures: elementwise, indexing, sorting and reducing, for anything
	{unknown, "PyTorch, CUB", `at::(?:native|cuda)::\w+|(?:at_cuda_detail::)?cub::\w+`, ""},
}
