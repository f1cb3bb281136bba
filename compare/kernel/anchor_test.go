package kernel

import (
	"testing"

	"github.com/moebalance/moebalance/compare/steps"
)

// Names from the captures, and from the sources of engines.
func TestLaunch(t *testing.T) {
	for name, want := range map[string]steps.Launch{
		"fused_moe_kernel": {Anchor: steps.ExpertGEMM},
		"cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_4x1x1_cga1x1x1_kernel0_0": {Anchor: steps.Attention},
		"_chunk_scan_fwd_kernel":        {Anchor: steps.Attention},
		"_chunk_cumsum_fwd_kernel":      {Anchor: steps.Attention},
		"_state_passing_fwd_kernel":     {Anchor: steps.Attention},
		"_bmm_chunk_fwd_kernel":         {Anchor: steps.Attention},
		"_causal_conv1d_fwd_kernel":     {Anchor: steps.Attention},
		"_selective_scan_update_kernel": {Anchor: steps.Attention},
		"void selective_scan_fwd_kernel<Selective_Scan_fwd_kernel_traits<128, 16> >(SSMParamsBase)":                               {Anchor: steps.Attention},
		"fused_recurrent_gated_delta_rule_fwd_kernel":                                                                             {Anchor: steps.Attention},
		"void deep_gemm::sm90_fp8_mqa_logits<64, 128>(int)":                                                                       {Anchor: steps.Attention},
		"void (anonymous namespace)::softmax_warp_forward<c10::BFloat16, c10::BFloat16, float, 10, false, false>(c10::BFloat16*)": {Anchor: steps.Attention},
		"void <unnamed>::softmax_warp_forward<c10::BFloat16, c10::BFloat16, float, (int)9, (bool)0, (bool)0>(T2 *)":               {Anchor: steps.Attention},
		"void <unnamed>::softmax_warp_forward<float, float, float, (int)7, (bool)0, (bool)0>(T2 *)":                               {},
		"void <unnamed>::softmax_warp_forward<c10::BFloat16, float, float, (int)8, (bool)0, (bool)0>(T2 *)":                       {},
		"void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*)":                                                    {Anchor: steps.Attention},
		"triton_poi_fused_cat_rotary_embedding_3":                                                                                 {},
		"void at::native::sbtopk::gatherTopK<float, unsigned int, 2, false>(int)":                                                 {Anchor: steps.Router},
		"nvjet_sm90_tst_128x128_64x6_2x1_v_bz_TNT":                                                                                {Anchor: steps.Dense},
		"void cublasLt::splitKreduce_kernel<32, 16, int, float>(cublasLt::cublasSplitKParams<float>)":                             {Anchor: steps.Norm},
		"void vllm::rms_norm_kernel<c10::BFloat16>(c10::BFloat16*)":                                                               {Anchor: steps.Norm},
		"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)":                                              {Anchor: steps.Collective},
		"ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)":                                                       {Anchor: steps.Collective, Mark: steps.Perhaps},
		"ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)":                                                                {Anchor: steps.Collective, Mark: steps.Transfer},
		"computeSendRecvIndicesKernel":                                                                                            {},
		"_compute_slot_mapping_kernel":                                                                                            {Mark: steps.Sure},
		"triton_red_fused__to_copy_embedding_mean_0":                                                                              {Mark: steps.Sure},
		"create_flashinfer_kv_indices_triton":                                                                                     {Mark: steps.Sure},
		"void flashinfer::sampling::TopPSamplingFromProbKernel<1024>(float*)":                                                     {Mark: steps.Sure},
		"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float>, unsigned int> >(int)":   {Mark: steps.Sure},
		"void at::native::vectorized_elementwise_kernel<4, at::native::cos_kernel_cuda(at::TensorIteratorBase&)>(int)":            {Mark: steps.Sure},
		"void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*, int, long, long, long, long, bool)":             {Mark: steps.Perhaps},
		"void (anonymous namespace)::elementwise_kernel_with_index<int, at::native::arange_cuda_out>(int)":                        {Mark: steps.Perhaps},
		"void flash_bwd_kernel<64>(int)":                                                                                          {Anchor: steps.Backward},
	} {
		if have := Classify(name).Launch(name); have != want {
			t.Errorf("%s: have %+v, want %+v", name, have, want)
		}
	}
}
