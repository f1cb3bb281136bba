//go:build !purego

#include "go_asm.h"
#include "textflag.h"

// Y0 and Y1 hold, in each of eight columns, the two largest keys so far. MERGE
// merges them with the same in another order of columns, in X2 and X3.
#define MERGE \
	VPMINSD X2, X0, X4 \
	VPMAXSD X2, X0, X0 \
	VPMAXSD X3, X1, X1 \
	VPMAXSD X4, X1, X1

// KEYS looks up the keys of the four logits from a place in the eight. Their upper
// halves lead to them, the upper halves of what the table has.
#define KEYS(place, X) \
	MOVWLZX place+2(SI)(AX*4), R8 \
	MOVWLZX place+6(SI)(AX*4), R9 \
	MOVWLZX place+10(SI)(AX*4), R10 \
	MOVWLZX place+14(SI)(AX*4), R11 \
	VMOVD 4(BX)(R8*8), X \
	VPINSRD $1, 4(BX)(R9*8), X, X \
	VPINSRD $2, 4(BX)(R10*8), X, X \
	VPINSRD $3, 4(BX)(R11*8), X, X

// func scanEights(s *eights, logits *float32, tops *top)
TEXT ·scanEights(SB), NOSPLIT, $0-24
	MOVQ s+0(FP), AX
	MOVQ logits+8(FP), SI
	MOVQ tops+16(FP), R12
	MOVQ eights_table(AX), BX
	MOVQ eights_bias(AX), DX
	MOVQ eights_key(AX), DI
	MOVQ eights_key+8(AX), CX
	MOVQ eights_chunk(AX), R13
	XORQ AX, AX // the expert

chunk:
	LEAQ (AX)(R13*1), R15 // where the chunk ends
	CMPQ R15, CX
	CMOVQGT CX, R15
	VPCMPEQD Y0, Y0, Y0
	VPSLLD $31, Y0, Y0 // the smallest int32
	VMOVDQA Y0, Y1

eight:
	// One key after the other is faster than VPGATHERDD on processors that had to be
	// mended against leaks.
	KEYS(0, X2)
	KEYS(16, X3)
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

// func aboveEights(s *eights, dst *int32, chunks []int32, limit int32) int
TEXT ·aboveEights(SB), NOSPLIT, $0-56
	MOVQ s+0(FP), AX
	MOVQ dst+8(FP), DI
	MOVQ chunks_base+16(FP), R10
	MOVQ chunks_len+24(FP), R11
	MOVL limit+40(FP), R8
	MOVQ eights_key(AX), SI
	MOVQ eights_key+8(AX), CX
	MOVQ eights_chunk(AX), R13
	LEAQ ·places(SB), BX
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
	MOVQ DX, ret+48(FP)
	VZEROUPPER
	RET

// The numbers of sigmoidTable and its rate.
DATA rating<>+0(SB)/8, $32.0 // sigmoidLimit and sigmoidUnit
DATA rating<>+8(SB)/8, $1.0
DATA rating<>+16(SB)/8, $0.5
DATA rating<>+24(SB)/8, $0.16666666666666666 // 1/6
DATA rating<>+32(SB)/8, $0.041666666666666664 // 1/24
DATA rating<>+40(SB)/8, $1.4551915228366852e-11 // sigmoidSlack
DATA rating<>+48(SB)/4, $2046 // intervals, but for the first and one
GLOBL rating<>(SB), RODATA|NOPTR, $52

// func rateFours(t *sigmoidTable, logits, bias, plain *float32, experts []int32, scores *int64) (ok bool)
TEXT ·rateFours(SB), NOSPLIT, $0-65
	MOVQ t+0(FP), BX
	MOVQ logits+8(FP), SI
	MOVQ plain+24(FP), DI
	MOVQ experts_base+32(FP), DX
	MOVQ experts_len+40(FP), CX
	LEAQ (DX)(CX*4), CX // where the experts end
	VBROADCASTSD rating<>+0(SB), Y15
	VBROADCASTSD rating<>+8(SB), Y14
	VBROADCASTSD rating<>+16(SB), Y13
	VBROADCASTSD rating<>+24(SB), Y12
	VBROADCASTSD rating<>+32(SB), Y11
	VBROADCASTSD rating<>+40(SB), Y10
	VBROADCASTSS rating<>+48(SB), X9
	VPCMPEQD X8, X8, X8
	VXORPS X7, X7, X7 // not 0 where unknown

four:
	MOVLQSX (DX), R8
	MOVLQSX 4(DX), R9
	MOVLQSX 8(DX), R10
	MOVLQSX 12(DX), R11
	VMOVSS (SI)(R8*4), X0
	VINSERTPS $0x10, (SI)(R9*4), X0, X0
	VINSERTPS $0x20, (SI)(R10*4), X0, X0
	VINSERTPS $0x30, (SI)(R11*4), X0, X0
	VCVTPS2PD X0, Y0
	VADDPD Y15, Y0, Y1
	VMULPD Y15, Y1, Y1
	VCVTTPD2DQY Y1, X1
	VPADDD X8, X1, X2 // the interval before, since the first is not known
	VPMINUD X9, X2, X3
	VPCMPEQD X2, X3, X3
	VMOVMSKPS X3, AX
	CMPL AX, $15
	JNE unknown

	VPSLLD $4, X1, X1
	VMOVQ X1, R12
	VPEXTRQ $1, X1, R13
	MOVL R12, AX
	SHRQ $32, R12
	MOVL R13, R15
	SHRQ $32, R13
	VMOVUPD (BX)(AX*1), X1
	VMOVUPD (BX)(R12*1), X2
	VMOVUPD (BX)(R15*1), X3
	VMOVUPD (BX)(R13*1), X4
	VINSERTF128 $1, X3, Y1, Y1
	VINSERTF128 $1, X4, Y2, Y2
	VUNPCKLPD Y2, Y1, Y3 // middles
	VUNPCKHPD Y2, Y1, Y4 // exponentials
	VSUBPD Y0, Y3, Y0 // d
	VMULPD Y0, Y0, Y1 // dd
	VMULPD Y12, Y0, Y2
	VMULPD Y11, Y1, Y3
	VADDPD Y13, Y2, Y2
	VADDPD Y14, Y0, Y0
	VADDPD Y3, Y2, Y2
	VMULPD Y1, Y2, Y2
	VADDPD Y2, Y0, Y0
	VMULPD Y4, Y0, Y0
	VADDPD Y14, Y0, Y0
	VDIVPD Y0, Y14, Y0
	VMULPD Y10, Y0, Y1
	VSUBPD Y1, Y0, Y2
	VADDPD Y1, Y0, Y0
	VCVTPD2PSY Y2, X2
	VCVTPD2PSY Y0, X0
	VCMPPS $4, X2, X0, X0
	VORPS X0, X7, X7
	VMOVSS X2, (DI)(R8*4)
	VEXTRACTPS $1, X2, (DI)(R9*4)
	VEXTRACTPS $2, X2, (DI)(R10*4)
	VEXTRACTPS $3, X2, (DI)(R11*4)

	// The score with the bias, ordered and packed.
	MOVQ bias+16(FP), AX
	VMOVSS (AX)(R8*4), X0
	VINSERTPS $0x10, (AX)(R9*4), X0, X0
	VINSERTPS $0x20, (AX)(R10*4), X0, X0
	VINSERTPS $0x30, (AX)(R11*4), X0, X0
	VADDPS X2, X0, X0
	VPSRAD $31, X0, X1
	VPSRLD $1, X1, X1
	VPXOR X1, X0, X0
	VPXOR (DX), X8, X1
	VPUNPCKLDQ X0, X1, X2
	VPUNPCKHDQ X0, X1, X3
	MOVQ scores+56(FP), AX
	MOVQ DX, R8
	SUBQ experts_base+32(FP), R8
	VMOVDQU X2, (AX)(R8*2)
	VMOVDQU X3, 16(AX)(R8*2)
	ADDQ $16, DX
	CMPQ DX, CX
	JLT four

	VPTEST X7, X7
	SETEQ ok+64(FP)
	VZEROUPPER
	RET

unknown:
	MOVB $0, ok+64(FP)
	VZEROUPPER
	RET

// func largestFours(best, numbers []int64)
TEXT ·largestFours(SB), NOSPLIT, $0-48
	MOVQ best_base+0(FP), DI
	MOVQ best_len+8(FP), R8
	MOVQ numbers_base+24(FP), SI
	MOVQ numbers_len+32(FP), CX
	DECQ R8 // the last place
	TESTQ CX, CX
	JEQ done

	// Up to three of the smallest number there is make the fours full. They all
	// come to stand in the place behind the others.
	VPCMPEQD Y0, Y0, Y0
	VPSLLQ $63, Y0, Y0
	VMOVDQU Y0, (SI)(CX*8)
	ADDQ $3, CX
	ANDQ $~3, CX
	XORQ AX, AX

four:
	// A number's place is how many are larger.
	VMOVDQU (SI)(AX*8), Y0
	VPXOR Y1, Y1, Y1
	XORQ DX, DX

others:
	VPBROADCASTQ (SI)(DX*8), Y2
	VPBROADCASTQ 8(SI)(DX*8), Y3
	VPBROADCASTQ 16(SI)(DX*8), Y4
	VPBROADCASTQ 24(SI)(DX*8), Y5
	VPCMPGTQ Y0, Y2, Y2
	VPCMPGTQ Y0, Y3, Y3
	VPCMPGTQ Y0, Y4, Y4
	VPCMPGTQ Y0, Y5, Y5
	VPADDQ Y2, Y3, Y2
	VPADDQ Y4, Y5, Y4
	VPSUBQ Y2, Y1, Y1
	VPSUBQ Y4, Y1, Y1
	ADDQ $4, DX
	CMPQ DX, CX
	JLT others

	VEXTRACTI128 $1, Y1, X2
	VMOVQ X1, R9
	VPEXTRQ $1, X1, R10
	VMOVQ X2, R11
	VPEXTRQ $1, X2, R12
	CMPQ R9, R8
	CMOVQGT R8, R9
	CMPQ R10, R8
	CMOVQGT R8, R10
	CMPQ R11, R8
	CMOVQGT R8, R11
	CMPQ R12, R8
	CMOVQGT R8, R12
	VEXTRACTI128 $1, Y0, X2
	VMOVQ X0, (DI)(R9*8)
	VPEXTRQ $1, X0, (DI)(R10*8)
	VMOVQ X2, (DI)(R11*8)
	VPEXTRQ $1, X2, (DI)(R12*8)
	ADDQ $4, AX
	CMPQ AX, CX
	JLT four

done:
	VZEROUPPER
	RET
