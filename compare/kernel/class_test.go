package kernel

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// seenNames are names for each rule of kernelRules, in its order, as nsys since
// 2022 writes them: from the captures, published profiles, and the sources that
// the rules cite.
var seenNames = [][]string{
	{"void deep_gemm::sm100_fp8_fp4_mega_moe_impl<(unsigned int)7168, (unsigned int)2048>(T1)",
		"deep_gemm::sm100_bf16_mega_moe_impl"},
	{"kernel_cutlass_fc1fc2_kernel_impl_flashinferfused_moemegamoekernelMegaMoEKernel_object_at_0"},
	{"void monomoe::moe_kernel_topk<(int)8, (bool)1>(T1)"},
	{"void tensorrt_llm::kernels::ar_fusion::moe::moefinalize_allreduce_fusion_kernel_oneshot_lamport<(int)3>(T2)",
		"moereduce_allreduce_fusion_kernel_oneshot_lamport"},
	{"void deep_ep::elastic::barrier_impl<(int)2>(T1)", "void deep_ep::internode::cached_notify<(bool)0>(T1)",
		"void dpsk::ep::internode::cached_notify<(bool)0>(T1)", "hybrid_ep::device_sync_kernel"},
	{"void deep_ep::layout::get_dispatch_layout<(int)256, (int)4, (int)8>(T1)",
		"void deep_ep::legacy::layout::get_dispatch_layout<(int)256>(T1)",
		"void deep_ep::elastic::dispatch_copy_epilogue_impl<(int)4>(T1)"},
	{"void deep_ep::elastic::combine_reduce_epilogue_impl<(int)4>(T1)"},
	{"void deep_ep::internode_ll::dispatch<(bool)1, (bool)1, (int)6144>(T1)",
		"void deep_ep::elastic::dispatch_impl<(int)4>(T1)", "void deep_ep::elastic::hybrid_dispatch_impl<(int)4>(T1)",
		"void hybrid_ep::dispatch_kernel<(int)8>(T1)", "void uccl::internode_ll::dispatch<(bool)1>(T1)",
		"void nixl_ep::ep_kernels::dispatch<(bool)1>(T1)"},
	{"void deep_ep::internode_ll::combine<(bool)0, (int)6144, (int)11, (int)4>(T1)",
		"void deep_ep::elastic::combine_impl<(int)4>(T1)", "void deep_ep::elastic::hybrid_combine_impl<(int)4>(T1)"},
	{"void tensorrt_llm::kernels::moe_alltoall::moeA2ADispatchKernel<(int)8>(T1)"},
	{"void tensorrt_llm::kernels::moe_alltoall::moeA2ACombineKernel<__nv_bfloat16, (int)8>(T1)"},
	{"void tensorrt_llm::kernels::moe_alltoall::moeA2APrepareCombineKernel<(bool)1>(T1)"},
	{"void moe_comm::moeAllToAllKernel<(bool)1>(T1)"},
	{"tensorrt_llm::kernels::moeAllToAllKernel", "tensorrt_llm::kernels::moe_prepare::allToAllMetadataDevice"},
	{"void tensorrt_llm::kernels::moe_prepare::computeCountAndIndiceDevice<(int)4>(T1)", "moveIndiceDevice",
		"void tensorrt_llm::kernels::moe_alltoall::moeA2APrepareDispatchKernel", "computeCumsumDevice", "memsetExpertIdsDevice", "computeSendRecvIndicesKernel"},
	{"void pplx::dispatchKernel<(unsigned int)10, (bool)1>(T1)"},
	{"void pplx::combineKernel<(unsigned int)10, __nv_bfloat16>(T1)"},
	{"void nccl_ep::internode_ll::dispatch<(int)1>(T1)", "void nccl_ep::ht::dispatchKernel<(int)1>(T1)"},
	{"void nccl_ep::internode_ll::combine<(int)1>(T1)"},
	{"void mori::moe::EpDispatchIntraNodeKernel<__nv_bfloat16>(T1)", "EpDispatchInterNodeV1Kernel"},
	{"void mori::moe::EpCombineIntraNodeKernel<__nv_bfloat16>(T1)"},
	{"ncclDevKernel_SendRecv", "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL", "ncclKernel_AllReduce_RING_LL_Sum_half"},
	{"void vllm::cross_device_reduce_1stage<__nv_bfloat16, (int)8>(T1)",
		"void sglang::cross_device_reduce_2stage<half, (int)4>(T1)"},
	{"void tensorrt_llm::kernels::ar_fusion::allreduce_fusion_kernel_oneshot_lamport<(int)2>(T2)",
		"lamport_initialize_kernel"},
	{"void <unnamed>::two_shot_all_reduce_kernel_inplace<c10::BFloat16, (int)16, (int)2>(T1)",
		"one_shot_all_reduce_kernel"},
	{"void quickreduce::allreduce_prototype_twoshot<quickreduce::AllReduceTwoshot<__half>>(T1)"},
	{"void barrier_on_stream_kernel_threadgroup<(threadgroup_t)1>(T1)", "sync_all_on_stream_kernel",
		"void nvshmemi_transfer_rma_kernel<(int)1>(T1)"},
	{"void flashinfer::trtllm_dsv3_router_gemm::router_gemm_kernel<__nv_bfloat16, (int)128, (int)8>(T1)",
		"cake_router_gemm_bf16_256"},
	{"void fused_a_gemm_kernel<(int)1, (int)2112, (int)7168>(T1)"},
	{"void vllm::moe::topkGatingSoftmax<(int)8, (int)256, (int)4, (int)16, (int)32, int>(T1)",
		"void moeTopK<(int)256>(T1)"},
	{"void vllm::moe::grouped_topk_fused_kernel<float, int>(T1)", "group_idx_and_topk_idx_kernel",
		"void vllm::moe::topk_with_k2_kernel<__nv_bfloat16>(T1)", "_eplb_map_and_record_i32_kernel"},
	{"void cuda::topk_sum_and_topk_idx<(int)16, (int)64>(T1)", "cuda::aux_fi_impl"},
	{"void moe_fused_gate_kernel<__nv_bfloat16, cutlass::AlignedArray<__nv_bfloat16, (int)32>>(T1)",
		"moe_hash_topk_fused", "void moe_fused_gate_kernel_dynamic<float>(T1)"},
	{"void aiter::grouped_topk_kernel<float, (int)8>(T1)", "void aiter::grouped_topk_opt_sort_kernel<float>(T1)"},
	{"void topk_moe_cuda<(int)256, (bool)0>(T1)"},
	{"void tensorrt_llm::kernels::deepseek_v3_topk_kernel<float, float, int, (int)256, (bool)1>(T1)",
		"void tensorrt_llm::kernels::customMoeRoutingKernel<__nv_bfloat16, float, int, (int)128, (int)8>(T1)"},
	{"void moe::dev::routing::routingDeepSeek::routingMainKernel<moe::dev::routing::KernelParams<float>>(T1)",
		"kernel_cake_deepseek_routing_main"},
	{"_topk_forward", "pack_bitmatrix", "_sum_bitmatrix_rows", "_routing_compute_indx", "_compute_writeback_idx"},
	{"void at::native::sbtopk::gatherTopK<float, unsigned int, (int)2, (bool)0>(T1)"},
	{"void at::native::bitonicSortKVInPlace<(int)2, (int)-1, (int)16, (int)16, float, long>(T1)"},
	{"void vllm::moe::moe_align_block_size_kernel<int>(T1)", "void moe_align_block_size_kernel<long>(T1)",
		"void count_and_sort_expert_tokens_kernel<int>(T1)", "void moe_lora_align_block_size_kernel<int>(T1)",
		"void compute_problem_sizes_from_expert_offsets<(bool)0>(T1)", "apply_expert_map", "compute_expert_blockscale_offsets"},
	{"void tensorrt_llm::kernels::cutlass_kernels::fusedBuildExpertMapsSortFirstTokenKernel<(int)256>(T1)",
		"computeExpertFirstTokenOffsetKernel", "expandInputRowsKernel", "mergeExpertPrefixSumKernel"},
	{"void tensorrt_llm::kernels::cute_dsl::moeUnpermuteKernel<__nv_bfloat16>(T1)", "_unpermute_kernel",
		"_fwd_kernel_ep_gather", "post_reorder_triton_kernel", "void moe_unpermute_kernel<float, (int)128>(T1)"},
	{"void tensorrt_llm::kernels::cute_dsl::moePermuteKernel<__nv_bfloat16>(T1)", "moeOutputMemsetKernel",
		"void moe::dev::permute::permuteKernel<moe::dev::permute::KernelParams<cutlass::float_e4m3_t>>(T1)"},
	{"_fwd_kernel_ep_scatter_1", "_fwd_kernel_ep_scatter_2", "_count_expert_num_tokens", "masked_index_gather_kernel",
		"_preprocess_after_permute_kernel", "deepep_compute_src2dst_triton_kernel",
		"pre_reorder_triton_kernel_for_cutlass_moe", "deepep_permute_triton_kernel"},
	{"void mm_ids_helper<(int)8>(T1)"},
	{"void aiter::opus_moe_sorting_entry<aiter::MoeSortingMultiPhaseKernel_P23<aiter::MoeSortingProblemMp<int>>>(T1)"},
	{"_moe_mxfp4_sort_kernel", "_fused_dynamic_mxfp4_quant_moe_sort_kernel"},
	{"void cuda::get_fused_mapping<(int)512>(T1)", "cuda::expand_to_fused_with_scales_impl"},
	{"fused_moe_kernel", "batched_triton_kernel", "fused_moe_kernel_gptq_awq", "grouped_gemm_triton_kernel",
		"fused_moe_kernel_0d1d2d3de4de5de"},
	{"void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cutlass::gemm::GroupProblemShape<int>>>(T1)",
		"void cutlass::device_kernel<<unnamed>::cutlass_3x_group_gemm<cutlass::float_e4m3_t, cutlass::arch::Sm90>>(T1)"},
	{"void cutlass::Kernel<cutlass::gemm::kernel::GemmGrouped<cutlass::gemm::GemmShape<(int)128>>>(T1)"},
	{"void cutlass::device_kernel<dpsk::grouped_gemm::cuda::m_grouped_fp8_ptp128c::GemmKernel>(T1)"},
	{"void cutlass::device_kernel<dpsk::grouped_gemm::cuda::fp8_ptp128c::GemmKernel>(T1)"},
	{"void fused_moe::run_global<fused_moe::Fused_Moe_Kernel_sm80<__nv_bfloat16, (int)16>>(T1)"},
	{"void at::cuda::detail::prepare_grouped_gemm_data<cutlass::bfloat16_t, cute::tuple<long>>(T1)", "setup_grouped_gemm_kernel"},
	{"void deep_gemm::sm90_fp8_paged_mqa_logits<(unsigned int)1, (unsigned int)64>(T1)"},
	{"void deep_gemm::sm90_bf16_m_grouped_gemm_contiguous_impl<(unsigned int)4096>(T1)"},
	{"void deep_gemm::sm90_fp8_gemm_1d2d_impl<(cute::UMMA::Major)0, (unsigned int)132, (deep_gemm::GemmType)2>(T1)"},
	{"void deep_gemm::sm90_fp8_gemm_1d2d_impl<(cute::UMMA::Major)0, (bool)1, (deep_gemm::GemmType)0>(T1)"},
	{"void deep_gemm::fp8_gemm_kernel_swapAB<(unsigned int)4096, (unsigned int)7168>(T1)"},
	{"bmm_E2m1_E2m1E2m1_Fp32_t128x8x512_s7_et128x8_m128x8x64_swiGlu_dynBatch_sm100a",
		"MoE_ProjUp_BatchN_bf16", "MoE_ProjDown_BatchN_bf16"},
	{"kernel_cutlass_kernel_cute_dsl_kernelsblackwellblockscaled_contiguous_grouped_gemm_swiglu_fusion",
		"blockscaled_contiguous_grouped_gemm_finalize_fusion",
		"cute_dsl_kernelsblackwellblockscaled_contiguous_grouped_gemm",
		"kernel_cutlass_kernel_flashinfercute_dslblockscaled_contiguous_grouped_gemmSm100BlockScaledContiguous"},
	{"void marlin_moe_wna16::Marlin<__nv_bfloat16, (long)1125899906909960, (int)256, (bool)1>(T1)",
		"void moe_wna16_gemm_kernel<__nv_bfloat16, (int)4>(T1)", "void moe_q8_0<__nv_bfloat16, (bool)1>(T1)"},
	{"void ck_tile::kentry<2, ck_tile::MoeFlatmmKernel<ck_tile::GemmSpatiallyLocalTilePartitioner<int>>>(T1)",
		"void ck_tile::kentry<256, 1, ck_tile::FusedMoeGemmKernel<int>>(T1)"},
	{"void ck::kernel_moe_gemm_2lds<ck::GridwiseMoeGemm<(int)256>, (bool)1>(T1)",
		"aiter::fmoe_stage1_bf16_pertokenFp8_g1u1_32x512_pf2", "aiter::fmoe_bf16_pertokenFp8_g1u1_vs_silu_1tg_ps_32x512"},
	{"_matmul_ogs_NNT_bf16xbf16xmxfp4_128x256x128x1", "_p_matmul_ogs_NNT_bf16xbf16xmxfp4_16x256x128"},
	{"_matmul", "_p_matmul", "_p_matmul_NNT_bf16xbf16xmxfp4_16x256x128"},
	{"void humming<MmaOpClass, Shape<0u, 1536u, 2048u>, Shape<16u, 128u, 256u>, LayerConfig>(unsigned int, bool)"},
	{"_kernel_grouped_gemm_persistent_bf16", "w8a8_block_dynamic_fp8_matmul_grouped_kernel", "cutlass_fp4_group_mm_kernel",
		"kernel_cutlass_kernel_flashinfergemmkernelsgrouped_gemm_masked_blackwellSm100BlockScaled_tensor"},
	{"void vllm::moe_bgmv_shrink_sliced_kernel<(int)16>(T1)", "moe_bgmv_expand_sliced_kernel"},
	{"__myl_MoEFc1_cuda_tile", "__myl_MoEFc2_cuda_tile"},
	{"void tensorrt_llm::kernels::cutlass_kernels::doActivationKernel<__nv_bfloat16, (bool)1>(T1)",
		"doGatedActivationKernel", "_silu_and_mul_post_quant_kernel", "_silu_mul_fp8_quant_deep_gemm",
		"_silu_mul_per_token_group_quant_fp8_colmajor"},
	{"triton_red_fused_fused_add_rms_norm_moe_forward_shared_0", "triton_poi_fused__to_copy_mean_mul_pow_rsqrt_4"},
	{"triton_red_fused__to_copy_abs_clamp_cutlass_scaled_mm_div_max_mul_reciprocal_unsqueeze_view_0"},
	{"triton_poi_fused_add_clone_copy_expand_index_mul_neg_slice_split_stack_unsqueeze_view_4"},
	{"void vllm::act_and_mul_kernel<c10::BFloat16, &vllm::silu_kernel<c10::BFloat16>, (bool)1>(T1)",
		"scale_1x128_kernel", "silu_and_mul_kernel", "void per_token_quant_fp8_kernel<__nv_bfloat16>(long)",
		"void vllm::dynamic_scaled_int8_quant_kernel<c10::BFloat16>(T1)", "_static_quant_fp8", "triton_poi_fused_mul_silu_3"},
	{"void tensorrt_llm::kernels::cutlass_kernels::finalizeMoeRoutingKernel<__nv_bfloat16, (int)1>(T1)",
		"finalizeMoeRoutingNoFillingKernel", "moe::dev::finalize::finalizeDeepSeekKernel", "_fused_gather_finalize_kernel"},
	{"void cuda::reduce_fused_impl<__nv_bfloat16, (bool)0, (bool)0>(T1)"},
	{"void vllm::moe::moe_sum_kernel<c10::BFloat16, (int)8>(T1)", "_reduce_grouped", "moe_fused_mul_sum_kernel",
		"_finalize_matmul_scatter", "void apply_shuffle_mul_sum_kernel<half>(T1)"},
	{"void cutlass::device_kernel<flash::FlashAttnFwdCombine<cute::tuple<cute::C<(int)16>>>>(T1)",
		"void cutlass::device_kernel<cutlass::fmha::kernel::Sm100FmhaMlaKernelTmaWarpspecialized<(int)4>>(T1)"},
	{"void flash::flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<(int)128, (int)64>>(T1)"},
	{"void flashinfer::BatchDecodeWithPagedKVCacheKernel<(flashinfer::PosEncodingMode)0>(T5)"},
	{"fmhaSm100fKernel_QkvBfloat16OBfloat16HQk576HV512HVPerCta256PagedKvDenseP64ForGen",
		"fmhaReductionKernel", "applyMLARopeAndAssignQKVKernelGeneration"},
	{"void vllm::paged_attention_v2_kernel<unsigned short, (int)128>(T1)", "vllm::concat_and_cache_mla_kernel",
		"void vllm::merge_attn_states_kernel<float, (int)128>(T1)", "void <unnamed>::store_kvcache<2048l, 2048l>(T1)",
		"void (anonymous namespace)::fused_rope_store_kernel<true, 128l>((anonymous namespace)::FusedRopeStoreParams)"},
	{"chunk_gated_delta_rule_fwd_kernel_h_blockdim64", "chunk_fwd_kernel_o", "_causal_conv1d_fwd_kernel",
		"fused_recurrent_gated_delta_rule_fwd_kernel", "chunk_kda_scaled_dot_kkt_fwd_kernel_intra_sub_intra",
		"fused_sigmoid_gating_delta_rule_update_kernel", "merge_16x16_to_64x64_inverse_kernel", "_chunk_scan_fwd_kernel",
		"void selective_scan_fwd_kernel<Selective_Scan_fwd_kernel_traits<128, 16, 1, true>>(SSMParamsBase)"},
	{"void flash_attn_ext_f16<(int)128, (int)128, (int)16>(T1)", "kernel_mha",
		"xqa_kernel_dt_bf16_d_128_beam_1_kvt_e4m3_pagedKV_64_nqpkv_8_m_16_sm_90"},
	{"kernel_unified_attention_2d", "kernel_unified_attention", "reduce_segments", "_fwd_kernel_stage2",
		"_fwd_kernel", "_fwd_grouped_kernel_stage1"},
	{"triton_tem_fused_flex_attention_2"},
	{"void ck_tile::kentry<(int)2, ck_tile::FmhaBatchPrefillWithPagedKVCacheKernel<(int)2>>(T1)"},
	{"void paged_attention_ll4mi_QKV_mfma16_kernel<(int)0, __hip_bfloat16>(T1)",
		"void paged_attention_ll4mi_reduce_kernel<__hip_bfloat16>(T1)"},
	{"aiter::mla_a16w8_qh16_m16x4_n16x1", "void kn_mla_reduce_v1_ps<(int)512, (int)32, (int)1>(T1)"},
	{"void vllm::rms_norm_kernel<c10::BFloat16, (int)8, (int)2, (bool)1>(T1)",
		"void vllm::fused_add_rms_norm_kernel<c10::BFloat16, (int)8>(T1)", "std::enable_if<(((8)>(0)))&&" +
			"vllm::_typeConvert<c10::BFloat16>::exists, void>::type vllm::fused_add_rms_norm_kernel<c10::BFloat16, (int)8>(T1)",
		"void aiter::add_rmsnorm_quant_kernel<__bf16, __bf16, (int)256, (int)16, (bool)1>(T1)",
		"void layer_norm::ln_fwd_kernel<layer_norm::Kernel_traits<__nv_bfloat16, (unsigned int)512>>(T1)"},
	{"void ck_tile::kentry<(int)1, ck_tile::Rmsnorm2dFwd<ck_tile::Rmsnorm2dFwdPipelineOnePass<(int)1>>>(T1)"},
	{"Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT32x32x256_MI16x16x1_SN_LDSB1", "triton_tem_fused_mm_3",
		"triton_tem_fused_addmm_relu_5", "triton_tem_fused__unsafe_view_mm_t_7",
		"_gemm_a16_w16_kernel_BLOCK_SIZE_M_16.kd", "_w8a8_block_fp8_matmul"},
	{"sm80_xmma_fprop_implicit_gemm_f16f16_f16f16_f16_nhwckrsc_nhwc_tilesize128x128x32_execute_kernel_trt"},
	{"nvjet_sm90_tst_256x128_64x4_2x1_v_bz_coopA_NNT", "sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64",
		"cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x64_64x3_tn_align8"},
	{"void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_32x6_tn_align8>(T1)",
		"void cutlass::device_kernel<vllm::cutlass_3x_gemm<signed char, cutlass::bfloat16_t>>(T1)"},
	{"void at::native::vectorized_gather_kernel<(int)16, long>(T1)",
		"void at_cuda_detail::cub::detail::radix_sort::DeviceRadixSortOnesweepKernel<long, (bool)1>(T1)"},
}

// Every rule decides the names that it is there for, in the spelling of every
// version, and none before it does.
func TestEveryRuleDecidesItsOwnNames(t *testing.T) {
	if len(seenNames) != len(kernelRules) {
		t.Fatalf("%d rules, but names for %d", len(kernelRules), len(seenNames))
	}
	for i, names := range seenNames {
		for _, name := range names {
			for _, spelled := range []string{name, spelledByPyTorch(name), spelledIn2021(name)} {
				if got := ruleOf(spelled); got != i {
					t.Errorf("%s\n\twant rule %d %s,\n\thave %d", spelled, i, kernelRules[i].function, got)
				}
				if want, have := NormalName(name), NormalName(spelled); want != have {
					t.Errorf("%s is spelled\n\t%s and\n\t%s", name, want, have)
				}
			}
		}
	}
	for _, r := range kernelRules {
		if !slices.Contains(Phases, r.class.Phase) || r.library == "" {
			t.Errorf("%s: phase %q, library %q", r.function, r.class.Phase, r.library)
		}
	}
}

var literal = regexp.MustCompile(`\((int|bool|unsigned int|unsigned long|long|unsigned char)\)(-?\d+)`)

// spelledByPyTorch writes foo<(int)4, (bool)1, (unsigned int)2>(int *) as
// foo<4, true, 2u>(int*).
func spelledByPyTorch(name string) string {
	name = literal.ReplaceAllStringFunc(name, func(s string) string {
		m := literal.FindStringSubmatch(s)
		switch m[1] {
		case "bool":
			return map[string]string{"0": "false", "1": "true"}[m[2]]
		case "unsigned int":
			return m[2] + "u"
		case "unsigned long":
			return m[2] + "ul"
		case "long":
			return m[2] + "l"
		}
		return m[2]
	})
	return strings.NewReplacer("<unnamed>", "(anonymous namespace)", " *", "*", " &", "&").Replace(name)
}

// spelledIn2021 writes the same as foo<4, 1, 2>(int*).
func spelledIn2021(name string) string {
	return strings.NewReplacer(" *", "*", " &", "&").Replace(literal.ReplaceAllString(name, "$2"))
}

// Names that resemble a rule's and are something else.
func TestTrapsForTheClassifier(t *testing.T) {
	for want, names := range map[Phase][]string{
		PhaseUnknown: {
			"dispatch", "combine", "my::dispatch_kernel", // short names of DeepEP collide with users' kernels
			"device_kernel", "sigmoid_gate_attention", "shared_expert_gate", "", ">>>><(",
			"void at::native::vectorized_elementwise_kernel<(int)4, at::native::sigmoid_kernel_cuda(T &)>(int)",
			// functors and parameters are not the kernel
			"void at::native::elementwise_kernel<(int)128, void vllm::moe::moe_sum_kernel<float>(int)>(int)",
			"void mine(cutlass::gemm::GroupProblemShape<int>, vllm::moe::topkGatingSoftmax<int>)",
			"void at::native::elementwise_kernel<(int)8, at::native::<unnamed>::silu_kernel(T &)::[lambda()]>",
			"void cub::DeviceRadixSortDispatch<int>(int)"},
		PhaseOther: {"void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int, int>>>(T1)"},
	} {
		for _, name := range names {
			for _, spelled := range []string{name, spelledByPyTorch(name)} {
				if got := Classify(spelled).Phase; got != want {
					t.Errorf("%q: want %q, have %q by rule %d", spelled, want, got, ruleOf(spelled))
				}
			}
		}
	}
}

// Any bytes: no panic, and spelling twice changes nothing more.
func FuzzClassify(f *testing.F) {
	for _, names := range seenNames {
		f.Add(names[0])
	}
	f.Fuzz(func(t *testing.T, name string) {
		if c := Classify(name); !slices.Contains(Phases, c.Phase) {
			t.Errorf("%q: %+v", name, c)
		}
		if i := ruleOf(name); i >= len(kernelRules) {
			t.Errorf("%q: rule %d", name, i)
		}
	})
}

// Any line of a rules file is an error, or a rule that classifies.
func FuzzParseRule(f *testing.F) {
	for _, line := range []string{"experts=my_grouped_gemm.*", "router = top[kK] ", "communication=", "=x", "experts=(",
		"dispatch=a=b"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		rule, err := ParseRule(line)
		if err != nil {
			return
		}
		Classes([]string{line}, []Rule{rule})
	})
}

// Each engine puts other arguments before the number of experts, or none.
func TestGateExperts(t *testing.T) {
	for name, want := range map[string]int{
		"void vllm::moe::topkGating<8, 128, 4, 16, 32, int, (vllm::moe::ScoringFunc)0>(T*)": 128,
		"void topkGatingSoftmax<float, (int)8, (int)256, (int)4, (int)16>(float *)":         256,
		"void topkGatingSigmoid<__nv_bfloat16, 4, 128, 4, 8>()":                             128,
		"topkGatingSoftmax":                             0,
		"void at::native::sbtopk::gatherTopK<8, 128>()": 0,
	} {
		if n := GateExperts(name); n != want {
			t.Errorf("%s: %d", name, n)
		}
	}
}
