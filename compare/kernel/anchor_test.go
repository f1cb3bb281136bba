package kernel

import (
	"testing"

	"github.com/moebalance/moebalance/compare/steps"
)

// Names from the captures, and from the sources of engines.
func TestLaunch(t *testing.T) {
	for want, names := range map[steps.Launch][]string{
		{Anchor: steps.ExpertGEMM}: {"fused_moe_kernel"},
		{Anchor: steps.Attention}: {
			"cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7", "_chunk_scan_fwd_kernel",
			"_chunk_cumsum_fwd_kernel", "_state_passing_fwd_kernel", "_bmm_chunk_fwd_kernel", "_causal_conv1d_fwd_kernel",
			"_selective_scan_update_kernel", "void selective_scan_fwd_kernel<Selective_Scan_fwd_kernel_traits<128, 16> >(T)",
			"fused_recurrent_gated_delta_rule_fwd_kernel", "void deep_gemm::sm90_fp8_mqa_logits<64, 128>(int)",
			"void (anonymous namespace)::softmax_warp_forward<c10::BFloat16, c10::BFloat16, float, 10, false, false>(T*)",
			"void <unnamed>::softmax_warp_forward<c10::BFloat16, c10::BFloat16, float, (int)9, (bool)0, (bool)0>(T2 *)",
			"void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*)"},
		{}: {
			"void <unnamed>::softmax_warp_forward<float, float, float, (int)7, (bool)0, (bool)0>(T2 *)",
			"void <unnamed>::softmax_warp_forward<c10::BFloat16, float, float, (int)8, (bool)0, (bool)0>(T2 *)",
			"triton_poi_fused_cat_rotary_embedding_3", "computeSendRecvIndicesKernel"},
		{Anchor: steps.Router}: {"void at::native::sbtopk::gatherTopK<float, unsigned int, 2, false>(int)"},
		{Anchor: steps.Dense}:  {"nvjet_sm90_tst_128x128_64x6_2x1_v_bz_TNT"},
		{Anchor: steps.Norm}: {"void cublasLt::splitKreduce_kernel<32, 16, int, float>(T)",
			"void vllm::rms_norm_kernel<c10::BFloat16>(c10::BFloat16*)"},
		{Anchor: steps.Collective}:                       {"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(T<4096ul>)"},
		{Anchor: steps.Collective, Mark: steps.Perhaps}:  {"ncclDevKernel_AllGather_RING_LL(T<4096ul>)"},
		{Anchor: steps.Collective, Mark: steps.Transfer}: {"ncclDevKernel_SendRecv(T<4096ul>)"},
		{Mark: steps.Sure}: {
			"_compute_slot_mapping_kernel", "triton_red_fused__to_copy_embedding_mean_0", "create_flashinfer_kv_indices_triton",
			"void flashinfer::sampling::TopPSamplingFromProbKernel<1024>(float*)",
			"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float> > >(int)",
			"void at::native::vectorized_elementwise_kernel<4, at::native::cos_kernel_cuda(at::TensorIteratorBase&)>(int)"},
		{Mark: steps.Perhaps}: {"void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*, int, long)",
			"void (anonymous namespace)::elementwise_kernel_with_index<int, at::native::arange_cuda_out>(int)"},
		{Anchor: steps.Backward}: {"void flash_bwd_kernel<64>(int)"},
	} {
		for _, name := range names {
			if have := Classify(name).Launch; have != want {
				t.Errorf("%s: have %+v, want %+v", name, have, want)
			}
		}
	}
}
