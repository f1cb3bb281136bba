//go:build !purego

#include "textflag.h"

// Y0 and Y1 hold, in each of eight columns, the two largest keys so far. MERGE
// merges them with the same in another order of columns, in X2 and X3.
#define MERGE \
	VPMINSD X2, X0, X4 \
	VPMAXSD X2, X0, X0 \
	VPMAXSD X3, X1, X1 \
	VPMAXSD X4, X1, X1

// func scanEights(table *[1 << 16]int32, logits []float32, bias, keys []int32, tops []top, chunk int)
TEXT ·scanEights(SB), NOSPLIT, $0-112
	MOVQ table+0(FP), BX
	MOVQ logits_base+8(FP), SI
	MOVQ logits_len+16(FP), CX
	MOVQ bias_base+32(FP), DX
	MOVQ keys_base+56(FP), DI
	MOVQ tops_base+80(FP), R12
	MOVQ chunk+104(FP), R13
	XORQ AX, AX // the expert

chunk:
	LEAQ (AX)(R13*1), R15 // where the chunk ends
	CMPQ R15, CX
	CMOVQGT CX, R15
	VPCMPEQD Y0, Y0, Y0
	VPSLLD $31, Y0, Y0 // the smallest int32
	VMOVDQA Y0, Y1

eight:
	// The upper halves of eight logits lead to eight keys. One after the other is
	// faster than VPGATHERDD on processors that had to be mended against leaks.
	MOVWLZX 2(SI)(AX*4), R8
	MOVWLZX 6(SI)(AX*4), R9
	MOVWLZX 10(SI)(AX*4), R10
	MOVWLZX 14(SI)(AX*4), R11
	VMOVD 4(BX)(R8*8), X2
	VPINSRD $1, 4(BX)(R9*8), X2, X2
	VPINSRD $2, 4(BX)(R10*8), X2, X2
	VPINSRD $3, 4(BX)(R11*8), X2, X2
	MOVWLZX 18(SI)(AX*4), R8
	MOVWLZX 22(SI)(AX*4), R9
	MOVWLZX 26(SI)(AX*4), R10
	MOVWLZX 30(SI)(AX*4), R11
	VMOVD 4(BX)(R8*8), X3
	VPINSRD $1, 4(BX)(R9*8), X3, X3
	VPINSRD $2, 4(BX)(R10*8), X3, X3
	VPINSRD $3, 4(BX)(R11*8), X3, X3
	VINSERTI128 $1, X3, Y2, Y2
	VPADDD (DX)(AX*4), Y2, Y2
	VMOVDQU Y2, (DI)(AX*4)
	VPMINSD Y2, Y0, Y3
	VPMAXSD Y2, Y0, Y0
	VPMAXSD Y3, Y1, Y1
	ADDQ $8, AX
	CMPQ AX, R15
	JLT eight

	VEXTRACTI128 $1, Y0, X2
	VEXTRACTI128 $1, Y1, X3
	MERGE
	VPSHUFD $0x4e, X0, X2
	VPSHUFD $0x4e, X1, X3
	MERGE
	VPSHUFD $0xb1, X0, X2
	VPSHUFD $0xb1, X1, X3
	MERGE
	VMOVD X0, (R12)
	VMOVD X1, 4(R12)
	ADDQ $8, R12
	CMPQ AX, CX
	JLT chunk
	VZEROUPPER
	RET

// func aboveEights(dst, keys, chunks []int32, chunk int, limit int32, places *[256][8]uint8) int
TEXT ·aboveEights(SB), NOSPLIT, $0-104
	MOVQ dst_base+0(FP), DI
	MOVQ keys_base+24(FP), SI
	MOVQ keys_len+32(FP), CX
	MOVQ chunks_base+48(FP), R10
	MOVQ chunks_len+56(FP), R11
	MOVQ chunk+72(FP), R13
	MOVL limit+80(FP), R8
	MOVQ places+88(FP), BX
	VMOVD R8, X1
	VPBROADCASTD X1, Y1
	LEAQ (R10)(R11*4), R11 // where the chunks end
	XORQ DX, DX // experts written

chunk:
	CMPQ R10, R11
	JEQ done
	MOVLQSX (R10), AX
	ADDQ $4, R10
	IMULQ R13, AX // the expert
	LEAQ (AX)(R13*1), R15 // where the chunk ends
	CMPQ R15, CX
	CMOVQGT CX, R15

eight:
	VMOVDQU (SI)(AX*4), Y3
	VPCMPGTD Y1, Y3, Y3
	VMOVMSKPS Y3, R8
	VMOVD AX, X4
	VPBROADCASTD X4, Y4
	VPMOVZXBD (BX)(R8*8), Y5
	VPADDD Y4, Y5, Y5
	VMOVDQU Y5, (DI)(DX*4)
	POPCNTL R8, R8
	ADDQ R8, DX
	ADDQ $8, AX
	CMPQ AX, R15
	JLT eight
	JMP chunk

done:
	MOVQ DX, ret+96(FP)
	VZEROUPPER
	RET

// func largestFours(best, numbers []int64)
TEXT ·largestFours(SB), NOSPLIT, $32-48
	MOVQ best_base+0(FP), DI
	MOVQ best_len+8(FP), R8
	MOVQ numbers_base+24(FP), SI
	MOVQ numbers_len+32(FP), CX
	DECQ R8 // the last place
	XORQ AX, AX
	CMPQ AX, CX
	JGE done

four:
	// A number's place is how many are larger.
	VMOVDQU (SI)(AX*8), Y0
	VPXOR Y1, Y1, Y1
	XORQ DX, DX

other:
	VPBROADCASTQ (SI)(DX*8), Y2
	VPCMPGTQ Y0, Y2, Y2
	VPSUBQ Y2, Y1, Y1
	INCQ DX
	CMPQ DX, CX
	JLT other

	VMOVDQU Y1, places-32(SP)
	LEAQ 4(AX), R9 // where the four end
	CMPQ R9, CX
	CMOVQGT CX, R9
	LEAQ places-32(SP), R12

place:
	MOVQ (R12), R10
	CMPQ R10, R8
	CMOVQGT R8, R10
	MOVQ (SI)(AX*8), R11
	MOVQ R11, (DI)(R10*8)
	ADDQ $8, R12
	INCQ AX
	CMPQ AX, R9
	JLT place
	CMPQ AX, CX
	JLT four

done:
	VZEROUPPER
	RET
