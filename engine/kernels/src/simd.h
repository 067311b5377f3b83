/* The vector vocabulary of one instruction set: VW float lanes a register, NV registers a panel of 16 channels, and
 * tiles of MR rows by NP panels that fit its register file. Selected by the INK_ISA_* macro of the translation unit. */
#ifndef INK_SIMD_H
#define INK_SIMD_H

#include "ink.h"
#include <string.h>

#if defined(INK_ISA_AVX512) || defined(INK_ISA_AVX512VNNI)
#include <immintrin.h>
#define VW 16
#define MR 12
#define NP 2
typedef __m512 vf;
typedef __m512i vi;
#define vf_load(p) _mm512_loadu_ps(p)
#define vf_store(p, v) _mm512_storeu_ps(p, v)
#define vf_set1(x) _mm512_set1_ps(x)
#define vf_add(a, b) _mm512_add_ps(a, b)
#define vf_sub(a, b) _mm512_sub_ps(a, b)
#define vf_mul(a, b) _mm512_mul_ps(a, b)
#define vf_div(a, b) _mm512_div_ps(a, b)
#define vf_max(a, b) _mm512_max_ps(a, b)
#define vf_min(a, b) _mm512_min_ps(a, b)
#define vf_fma(a, b, c) _mm512_fmadd_ps(a, b, c)
#define vf_from_vi(v) _mm512_cvtepi32_ps(v)
#define vi_from_vf(v) _mm512_cvtps_epi32(v)
#define vi_store(p, v) _mm512_storeu_si512((void *)(p), v)
/* VW numbers that fit 16 bits */
#define vi_store16(p, v) _mm256_storeu_si256((__m256i *)(p), _mm512_cvtepi32_epi16(v))
#define vi_load(p) _mm512_loadu_si512((const void *)(p))
#define vi_set1(x) _mm512_set1_epi32(x)
#define vi_add(a, b) _mm512_add_epi32(a, b)
#define vi_add16(a, b) _mm512_add_epi16(a, b)
#define vi_sub16(a, b) _mm512_sub_epi16(a, b)
#define vf_scale2(v, n) _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(v), _mm512_slli_epi32(n, 23)))
#define vf_abs(v) _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(v), _mm512_set1_epi32(0x7fffffff)))
#define vf_copysign(a, s)                                                                                              \
    _mm512_castsi512_ps(_mm512_or_si512(_mm512_castps_si512(vf_abs(a)),                                                \
                                        _mm512_and_si512(_mm512_castps_si512(s), _mm512_set1_epi32((int)0x80000000))))
#define vf_any_greater(a, b) (_mm512_cmp_ps_mask(a, b, _CMP_GT_OQ) != 0)
#define vf_where_greater(a, b, x, y) _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_GT_OQ), y, x)
#define vf_from_i8(p) _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(p))))
#define vi_widen_high(p) _mm512_slli_epi16(_mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)(p))), 8)
#define vi_mul_round(a, b) _mm512_mulhrs_epi16(a, b)
INK_INLINE vi vi_pairs(const int16_t *p) {
    __m512i x = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p));
    return _mm512_or_si512(x, _mm512_slli_epi32(x, 16));
}
#ifdef INK_ISA_AVX512VNNI
#define INK_NAME avx512vnni
/* Written out: clang takes the intrinsic apart into a multiply and an add wherever it believes that to be quicker. */
INK_INLINE vi vi_dot(vi acc, vi a, vi w) {
    __asm__("vpdpwssd %2, %1, %0" : "+v"(acc) : "v"(a), "v"(w));
    return acc;
}
/* Products of four: INK_CODE_ZERO is the code that stands for the least value of a row, 0 unsigned or -128 signed. */
#define INK_DOT4
#define INK_CODE_ZERO 0
INK_INLINE vi vi_dot4(vi acc, vi a, vi w) {
    __asm__("vpdpbusd %2, %1, %0" : "+v"(acc) : "v"(a), "v"(w));
    return acc;
}
#define vi_store8(p, v) _mm_storeu_si128((__m128i *)(p), _mm512_cvtepi32_epi8(v))
/* 16 pairs, then 16 more, to 16 quads. */
INK_INLINE void ink_quads(const int8_t *w, int8_t *out) {
    __m512i x = _mm512_loadu_si512((const void *)w);
    __m512i low = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(x));
    __m512i high = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(x, 1));
    _mm512_storeu_si512((void *)out, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
}
#else
#define INK_NAME avx512
#define vi_dot(acc, a, w) _mm512_add_epi32(acc, _mm512_madd_epi16(a, w))
#endif

#elif defined(INK_ISA_AVX2) || defined(INK_ISA_AVXVNNI)
#include <immintrin.h>
#define VW 8
#define MR 6
#define NP 1
typedef __m256 vf;
typedef __m256i vi;
#define vf_load(p) _mm256_loadu_ps(p)
#define vf_store(p, v) _mm256_storeu_ps(p, v)
#define vf_set1(x) _mm256_set1_ps(x)
#define vf_add(a, b) _mm256_add_ps(a, b)
#define vf_sub(a, b) _mm256_sub_ps(a, b)
#define vf_mul(a, b) _mm256_mul_ps(a, b)
#define vf_div(a, b) _mm256_div_ps(a, b)
#define vf_max(a, b) _mm256_max_ps(a, b)
#define vf_min(a, b) _mm256_min_ps(a, b)
#define vf_fma(a, b, c) _mm256_fmadd_ps(a, b, c)
#define vf_from_vi(v) _mm256_cvtepi32_ps(v)
#define vi_from_vf(v) _mm256_cvtps_epi32(v)
#define vi_store(p, v) _mm256_storeu_si256((__m256i *)(p), v)
#define vi_store16(p, v)                                                                                               \
    _mm_storeu_si128((__m128i *)(p), _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1)))
#define vi_load(p) _mm256_loadu_si256((const __m256i *)(p))
#define vi_set1(x) _mm256_set1_epi32(x)
#define vi_add(a, b) _mm256_add_epi32(a, b)
#define vi_add16(a, b) _mm256_add_epi16(a, b)
#define vi_sub16(a, b) _mm256_sub_epi16(a, b)
#define vf_scale2(v, n) _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(v), _mm256_slli_epi32(n, 23)))
#define vf_abs(v) _mm256_andnot_ps(_mm256_set1_ps(-0.0f), v)
#define vf_copysign(a, s) _mm256_or_ps(vf_abs(a), _mm256_and_ps(s, _mm256_set1_ps(-0.0f)))
#define vf_any_greater(a, b) (_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_GT_OQ)) != 0)
#define vf_where_greater(a, b, x, y) _mm256_blendv_ps(y, x, _mm256_cmp_ps(a, b, _CMP_GT_OQ))
#define vf_from_i8(p) _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(p))))
#define vi_mul_round(a, b) _mm256_mulhrs_epi16(a, b)
/* One shuffle where widening and shifting are two instructions. Written out: in a tile no register is left for the pattern. */
INK_INLINE vi vi_widen_high(const int8_t *p) {
    static const int8_t high[32] __attribute__((aligned(32))) = {-1, 0, -1, 1, -1, 2,  -1, 3,  -1, 4,  -1, 5,  -1, 6,  -1, 7,
                                                                 -1, 8, -1, 9, -1, 10, -1, 11, -1, 12, -1, 13, -1, 14, -1, 15};
    vi x = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)p));
    __asm__("vpshufb %1, %0, %0" : "+x"(x) : "m"(*(const __m256i *)high));
    return x;
}
INK_INLINE vi vi_pairs(const int16_t *p) {
    __m256i x = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
    return _mm256_or_si256(x, _mm256_slli_epi32(x, 16));
}
#ifdef INK_ISA_AVXVNNI
#define INK_NAME avxvnni
INK_INLINE vi vi_dot(vi acc, vi a, vi w) {
    __asm__("%{vex%} vpdpwssd %2, %1, %0" : "+x"(acc) : "x"(a), "x"(w));
    return acc;
}
#define INK_DOT4
#define INK_CODE_ZERO 0
INK_INLINE vi vi_dot4(vi acc, vi a, vi w) {
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(acc) : "x"(a), "x"(w));
    return acc;
}
INK_INLINE void vi_store8(void *p, vi v) {
    __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    _mm_storel_epi64((__m128i *)p, _mm_packus_epi16(words, words));
}
INK_INLINE void ink_quads(const int8_t *w, int8_t *out) {
    __m256i a = _mm256_loadu_si256((const __m256i *)w), b = _mm256_loadu_si256((const __m256i *)(w + 32));
    __m256i low = _mm256_unpacklo_epi16(a, b), high = _mm256_unpackhi_epi16(a, b);
    _mm256_storeu_si256((__m256i *)out, _mm256_permute2x128_si256(low, high, 0x20));
    _mm256_storeu_si256((__m256i *)(out + 32), _mm256_permute2x128_si256(low, high, 0x31));
}
#else
#define INK_NAME avx2
#define vi_dot(acc, a, w) _mm256_add_epi32(acc, _mm256_madd_epi16(a, w))
/* Both registers of a panel: acc += the two int16 at p times w. Written out for the order of instructions: with both products
 * ahead of both sums a tile takes 7.4 cycles a step where the compiler's order takes 7.7. */
#define INK_DOT_PAIR
INK_INLINE void vi_dot_pair(vi *acc0, vi *acc1, const char *p, vi w0, vi w1) {
    vi some, product;
    __asm__("vpbroadcastd %4, %2\n\tvpmaddwd %5, %2, %3\n\tvpmaddwd %6, %2, %2\n\tvpaddd %3, %0, %0\n\tvpaddd %2, %1, %1"
            : "+x"(*acc0), "+x"(*acc1), "=&x"(some), "=&x"(product)
            : "m"(*(const int32_t *)p), "x"(w0), "x"(w1));
}
#endif

#elif defined(INK_ISA_NEON) || defined(INK_ISA_NEONDOT) || defined(INK_ISA_NEONI8MM)
#include <arm_neon.h>
#define VW 4
#define MR 5
#define NP 1
typedef float32x4_t vf;
typedef int32x4_t vi;
#define vf_load(p) vld1q_f32(p)
#define vf_store(p, v) vst1q_f32(p, v)
#define vf_set1(x) vdupq_n_f32(x)
#define vf_add(a, b) vaddq_f32(a, b)
#define vf_sub(a, b) vsubq_f32(a, b)
#define vf_mul(a, b) vmulq_f32(a, b)
#define vf_div(a, b) vdivq_f32(a, b)
#define vf_max(a, b) vmaxq_f32(a, b)
#define vf_min(a, b) vminq_f32(a, b)
#define vf_fma(a, b, c) vfmaq_f32(c, a, b)
#define vf_from_vi(v) vcvtq_f32_s32(v)
#define vi_from_vf(v) vcvtnq_s32_f32(v)
#define vi_store(p, v) vst1q_s32((int32_t *)(p), v)
#define vi_store16(p, v) vst1_s16(p, vmovn_s32(v))
#define vi_load(p) vreinterpretq_s32_s16(vld1q_s16((const int16_t *)(p)))
#define vi_set1(x) vdupq_n_s32(x)
#define vi_add(a, b) vaddq_s32(a, b)
#define vi_add16(a, b) vreinterpretq_s32_s16(vaddq_s16(vreinterpretq_s16_s32(a), vreinterpretq_s16_s32(b)))
#define vi_sub16(a, b) vreinterpretq_s32_s16(vsubq_s16(vreinterpretq_s16_s32(a), vreinterpretq_s16_s32(b)))
#define vf_scale2(v, n) vreinterpretq_f32_s32(vaddq_s32(vreinterpretq_s32_f32(v), vshlq_n_s32(n, 23)))
#define vf_abs(v) vabsq_f32(v)
#define vf_any_greater(a, b) (vmaxvq_u32(vcgtq_f32(a, b)) != 0)
#define vf_where_greater(a, b, x, y) vbslq_f32(vcgtq_f32(a, b), x, y)
#define vf_copysign(a, s) vbslq_f32(vdupq_n_u32(0x80000000u), s, a)
INK_INLINE vf vf_from_i8(const int8_t *p) {
    int32_t four;
    memcpy(&four, p, 4);
    return vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_s32(vdup_n_s32(four))))));
}
INK_INLINE vi vi_widen_high(const int8_t *p) { return vreinterpretq_s32_s16(vshlq_n_s16(vmovl_s8(vld1_s8(p)), 8)); }
#define vi_mul_round(a, b) vreinterpretq_s32_s16(vqrdmulhq_s16(vreinterpretq_s16_s32(a), vreinterpretq_s16_s32(b)))
INK_INLINE vi vi_pairs(const int16_t *p) {
    int16x4_t x = vld1_s16(p);
    return vreinterpretq_s32_s16(vcombine_s16(vzip1_s16(x, x), vzip2_s16(x, x)));
}
INK_INLINE vi vi_mul2(vi a, vi w) {
    int16x8_t x = vreinterpretq_s16_s32(a), y = vreinterpretq_s16_s32(w);
    return vpaddq_s32(vmull_s16(vget_low_s16(x), vget_low_s16(y)), vmull_high_s16(x, y));
}
#define vi_dot(acc, a, w) vaddq_s32(acc, vi_mul2(a, w))
#ifdef INK_ISA_NEON
#define INK_NAME neon
#else
#define INK_DOT4
#define INK_CODE_ZERO -128 /* products of four and of matrices are of signed numbers */
INK_INLINE void vi_store8(void *p, vi v) {
    int16x4_t words = vmovn_s32(v);
    int32_t four = vget_lane_s32(vreinterpret_s32_s8(vmovn_s16(vcombine_s16(words, words))), 0);
    memcpy(p, &four, 4);
}
INK_INLINE void ink_quads(const int8_t *w, int8_t *out) {
    for (int half = 0; half < 2; half++) {
        uint16x8_t a = vld1q_u16((const uint16_t *)(w + 16 * half)), b = vld1q_u16((const uint16_t *)(w + 32 + 16 * half));
        vst1q_u16((uint16_t *)(out + 32 * half), vzip1q_u16(a, b));
        vst1q_u16((uint16_t *)(out + 32 * half + 16), vzip2q_u16(a, b));
    }
}
#endif
#ifdef INK_ISA_NEONDOT
#define INK_NAME neondot
#define vi_dot4(acc, a, w) vdotq_s32(acc, vreinterpretq_s8_s32(a), vreinterpretq_s8_s32(w))
#elif defined(INK_ISA_NEONI8MM)
#define INK_NAME neoni8mm
/* Products of matrices: a holds 8 codes of one row and 8 of another, w those of two channels, and acc the first row's sums for
 * both channels, then the second's. */
#define INK_MATRIX
#define vi_matrix(acc, a, w) vmmlaq_s32(acc, vreinterpretq_s8_s32(a), vreinterpretq_s8_s32(w))
#define vi_two_rows(p, q) vreinterpretq_s32_s8(vcombine_s8(vld1_s8((const int8_t *)(p)), vld1_s8((const int8_t *)(q))))
/* One row's sums for four channels, out of those of two rows for two and two. */
INK_INLINE vi vi_first_row(vi a, vi b) {
    return vreinterpretq_s32_s64(vzip1q_s64(vreinterpretq_s64_s32(a), vreinterpretq_s64_s32(b)));
}
INK_INLINE vi vi_second_row(vi a, vi b) {
    return vreinterpretq_s32_s64(vzip2q_s64(vreinterpretq_s64_s32(a), vreinterpretq_s64_s32(b)));
}
/* Four times 16 pairs to 16 eights, so that two channels are side by side. */
INK_INLINE void ink_eights(const int8_t *w, int8_t *out) {
    int8_t quads[8 * INK_PANEL];
    ink_quads(w, quads);
    ink_quads(w + 4 * INK_PANEL, quads + 4 * INK_PANEL);
    for (int i = 0; i < 4 * INK_PANEL; i += 16) {
        uint32x4_t a = vld1q_u32((const uint32_t *)(quads + i)), b = vld1q_u32((const uint32_t *)(quads + 4 * INK_PANEL + i));
        vst1q_u32((uint32_t *)(out + 2 * i), vzip1q_u32(a, b));
        vst1q_u32((uint32_t *)(out + 2 * i + 16), vzip2q_u32(a, b));
    }
}
#endif

#else /* baseline x86-64: SSE2 only */
#include <emmintrin.h>
#define INK_NAME baseline
#define VW 4
#define MR 3
#define NP 1
typedef __m128 vf;
typedef __m128i vi;
#define vf_load(p) _mm_loadu_ps(p)
#define vf_store(p, v) _mm_storeu_ps(p, v)
#define vf_set1(x) _mm_set1_ps(x)
#define vf_add(a, b) _mm_add_ps(a, b)
#define vf_sub(a, b) _mm_sub_ps(a, b)
#define vf_mul(a, b) _mm_mul_ps(a, b)
#define vf_div(a, b) _mm_div_ps(a, b)
#define vf_max(a, b) _mm_max_ps(a, b)
#define vf_min(a, b) _mm_min_ps(a, b)
#define vf_fma(a, b, c) _mm_add_ps(_mm_mul_ps(a, b), c)
#define vf_from_vi(v) _mm_cvtepi32_ps(v)
#define vi_from_vf(v) _mm_cvtps_epi32(v)
#define vi_store(p, v) _mm_storeu_si128((__m128i *)(p), v)
#define vi_store16(p, v) _mm_storel_epi64((__m128i *)(p), _mm_packs_epi32(v, v))
#define vi_load(p) _mm_loadu_si128((const __m128i *)(p))
#define vi_set1(x) _mm_set1_epi32(x)
#define vi_add(a, b) _mm_add_epi32(a, b)
#define vi_add16(a, b) _mm_add_epi16(a, b)
#define vi_sub16(a, b) _mm_sub_epi16(a, b)
#define vf_scale2(v, n) _mm_castsi128_ps(_mm_add_epi32(_mm_castps_si128(v), _mm_slli_epi32(n, 23)))
#define vf_abs(v) _mm_andnot_ps(_mm_set1_ps(-0.0f), v)
#define vf_copysign(a, s) _mm_or_ps(vf_abs(a), _mm_and_ps(s, _mm_set1_ps(-0.0f)))
#define vf_any_greater(a, b) (_mm_movemask_ps(_mm_cmpgt_ps(a, b)) != 0)
INK_INLINE vf vf_where_greater(vf a, vf b, vf x, vf y) {
    __m128 mask = _mm_cmpgt_ps(a, b);
    return _mm_or_ps(_mm_and_ps(mask, x), _mm_andnot_ps(mask, y));
}
INK_INLINE vi vi_widen_high(const int8_t *p) {
    return _mm_unpacklo_epi8(_mm_setzero_si128(), _mm_loadl_epi64((const __m128i *)p));
}
INK_INLINE vi vi_mul_round(vi a, vi b) {
    __m128i low = _mm_mullo_epi16(a, b), high = _mm_mulhi_epi16(a, b), half = _mm_set1_epi32(0x4000);
    __m128i x = _mm_srai_epi32(_mm_add_epi32(_mm_unpacklo_epi16(low, high), half), 15);
    return _mm_packs_epi32(x, _mm_srai_epi32(_mm_add_epi32(_mm_unpackhi_epi16(low, high), half), 15));
}
INK_INLINE vi vi_pairs(const int16_t *p) {
    __m128i x = _mm_loadl_epi64((const __m128i *)p);
    return _mm_unpacklo_epi16(x, x);
}
INK_INLINE vf vf_from_i8(const int8_t *p) {
    int32_t four;
    memcpy(&four, p, 4);
    __m128i x = _mm_cvtsi32_si128(four);
    x = _mm_unpacklo_epi8(x, x);
    return _mm_cvtepi32_ps(_mm_srai_epi32(_mm_unpacklo_epi16(x, x), 24));
}
#define vi_dot(acc, a, w) _mm_add_epi32(acc, _mm_madd_epi16(a, w))
#endif

#define NV (INK_PANEL / VW)

#define INK_PRAGMA(x) _Pragma(#x)
#define INK_UNROLL(n) INK_PRAGMA(GCC unroll n)

#ifndef INK_DOT4 /* never called: int8-full is refused where there are no products of four */
#define vi_dot4(acc, a, w) (acc)
#endif

/* Two int16 or four 8-bit activations as one 32-bit lane value. */
INK_INLINE int32_t ink_four_bytes(const char *p) {
    int32_t four;
    memcpy(&four, p, 4);
    return four;
}

/* The first n < VW lanes of a row's tail, zeros behind: tails go through the same vector arithmetic as whole rows. */
INK_INLINE vf vf_load_n(const float *p, int n) {
    float lanes[VW] = {0};
    memcpy(lanes, p, (size_t)n * sizeof(float));
    return vf_load(lanes);
}

INK_INLINE void vf_store_n(float *p, vf v, int n) {
    float lanes[VW];
    vf_store(lanes, v);
    memcpy(p, lanes, (size_t)n * sizeof(float));
}

/* out (4, 4), ldo apart = the transpose of x (4, 4), ld apart, times factor. */
INK_INLINE void turn4(const float *x, int64_t ld, float factor, float *out, int64_t ldo) {
#if defined(__aarch64__)
    float32x4x2_t a = vtrnq_f32(vld1q_f32(x), vld1q_f32(x + ld)), b = vtrnq_f32(vld1q_f32(x + 2 * ld), vld1q_f32(x + 3 * ld));
    for (int i = 0; i < 2; i++) {
        vst1q_f32(out + i * ldo, vmulq_n_f32(vcombine_f32(vget_low_f32(a.val[i]), vget_low_f32(b.val[i])), factor));
        vst1q_f32(out + (i + 2) * ldo, vmulq_n_f32(vcombine_f32(vget_high_f32(a.val[i]), vget_high_f32(b.val[i])), factor));
    }
#else
    __m128 row[4], f = _mm_set1_ps(factor);
    for (int i = 0; i < 4; i++) row[i] = _mm_loadu_ps(x + i * ld);
    _MM_TRANSPOSE4_PS(row[0], row[1], row[2], row[3]);
    for (int i = 0; i < 4; i++) _mm_storeu_ps(out + i * ldo, _mm_mul_ps(row[i], f));
#endif
}

/* Lane sums and maxima in one fixed order. */
INK_INLINE float vf_sum(vf v) {
    float lanes[VW];
    vf_store(lanes, v);
    for (int half = VW / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) lanes[i] += lanes[i + half];
    return lanes[0];
}

INK_INLINE float vf_largest(vf v) {
    float lanes[VW];
    vf_store(lanes, v);
    for (int i = 1; i < VW; i++) lanes[0] = lanes[i] > lanes[0] ? lanes[i] : lanes[0];
    return lanes[0];
}

#endif
