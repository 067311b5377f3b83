/* Matrix tiles: MR rows by NP panels of 16 channels held in registers while the inner dimension streams past.
 *
 * float32: one accumulator an element, inputs in ascending order, one fused multiply-add each (multiply, then add, on
 * the baseline). An element's value depends on its own row and column only, never on the tile that it fell in.
 * int8: s16 x s8 pairs summed in int32 over a group of 64 inputs (127 * 32767 * 64 = 2.7e8 < 2^31), then
 * one convert and multiply-add into float32 with the group's scale. */
#ifndef INK_GEMM_H
#define INK_GEMM_H

#include "simd.h"

/* Inner-dimension blocks such that NP panels stay in a 32 KiB first-level cache while the rows pass. */
#define KC_F32 (384 / NP)
#define KC_I8 (1024 / NP)
/* Rows of one work item: their activations stay in the second-level cache while the panels pass. */
#define ROW_BLOCK (MR * (96 / MR))

/* c (mr, np * 16) (+)= a (mr, k) * b; b: np panels panel_stride apart, k rows of 16 floats ldb apart. */
INK_INLINE void f32_tile(const int mr, const int np, const float *a, int64_t lda, const float *b, int64_t ldb,
                         int64_t panel_stride, int32_t k, float *c, int64_t ldc, int add) {
    vf acc[MR][NP * NV];
#pragma GCC unroll 16
    for (int r = 0; r < mr; r++)
#pragma GCC unroll 16
        for (int j = 0; j < np * NV; j++) acc[r][j] = add ? vf_load(c + r * ldc + j * VW) : vf_set1(0.0f);
    for (int32_t i = 0; i < k; i++) {
        vf w[NP * NV];
#pragma GCC unroll 16
        for (int j = 0; j < np * NV; j++) w[j] = vf_load(b + (j / NV) * panel_stride + i * ldb + (j % NV) * VW);
#pragma GCC unroll 16
        for (int r = 0; r < mr; r++) {
            vf x = vf_set1(a[r * lda + i]);
#pragma GCC unroll 16
            for (int j = 0; j < np * NV; j++) acc[r][j] = vf_fma(x, w[j], acc[r][j]);
        }
    }
#pragma GCC unroll 16
    for (int r = 0; r < mr; r++)
#pragma GCC unroll 16
        for (int j = 0; j < np * NV; j++) vf_store(c + r * ldc + j * VW, acc[r][j]);
}

/* The same for int16 rows and int8 panels: w: np panels panel_stride bytes apart; scales: 16 a group, scale_stride
 * floats from panel to panel. The result lacks the row scales. */
INK_INLINE void i8_tile(const int mr, const int np, const int16_t *a, int64_t lda, const int8_t *w,
                        int64_t panel_stride, const float *scales, int64_t scale_stride, int32_t groups, float *c,
                        int64_t ldc, int add) {
    float sums[MR * NP * INK_PANEL];
    for (int r = 0; r < mr; r++) {
        if (add)
            memcpy(sums + r * np * INK_PANEL, c + r * ldc, (size_t)(np * INK_PANEL) * sizeof(float));
        else
            memset(sums + r * np * INK_PANEL, 0, (size_t)(np * INK_PANEL) * sizeof(float));
    }
    for (int32_t g = 0; g < groups; g++) {
        vi acc[MR][NP * NV];
#pragma GCC unroll 16
        for (int r = 0; r < mr; r++)
#pragma GCC unroll 16
            for (int j = 0; j < np * NV; j++) acc[r][j] = vi_set1(0);
        for (int32_t p = g * (INK_GROUP / 2); p < (g + 1) * (INK_GROUP / 2); p++) {
            vi x[NP * NV];
#pragma GCC unroll 16
            for (int j = 0; j < np * NV; j++)
                x[j] = vi_widen(w + (j / NV) * panel_stride + (int64_t)p * 2 * INK_PANEL + (j % NV) * 2 * VW);
#pragma GCC unroll 16
            for (int r = 0; r < mr; r++) {
                vi pair = vi_set1(ink_pair(a + r * lda + 2 * p));
#pragma GCC unroll 16
                for (int j = 0; j < np * NV; j++) acc[r][j] = vi_dot(acc[r][j], pair, x[j]);
            }
        }
#pragma GCC unroll 16
        for (int j = 0; j < np * NV; j++) {
            vf s = vf_load(scales + (j / NV) * scale_stride + (int64_t)g * INK_PANEL + (j % NV) * VW);
#pragma GCC unroll 16
            for (int r = 0; r < mr; r++) {
                float *sum = sums + r * np * INK_PANEL + j * VW;
                vf_store(sum, vf_fma(vf_from_vi(acc[r][j]), s, vf_load(sum)));
            }
        }
    }
    for (int r = 0; r < mr; r++) memcpy(c + r * ldc, sums + r * np * INK_PANEL, (size_t)(np * INK_PANEL) * sizeof(float));
}

/* One compiled tile for each number of rows and panels, so that every accumulator is a register. */
#define INK_EACH_ROW_COUNT(CASE)                                                                                       \
    CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8) CASE(9) CASE(10) CASE(11) CASE(12)

static void f32_rows(int mr, int np, const float *a, int64_t lda, const float *b, int64_t ldb, int64_t panel_stride,
                     int32_t k, float *c, int64_t ldc, int add) {
#define CASE(R)                                                                                                        \
    case R:                                                                                                            \
        if (R <= MR) {                                                                                                 \
            if (NP > 1 && np == NP)                                                                                    \
                f32_tile(R <= MR ? R : 1, NP, a, lda, b, ldb, panel_stride, k, c, ldc, add);                           \
            else                                                                                                       \
                f32_tile(R <= MR ? R : 1, 1, a, lda, b, ldb, panel_stride, k, c, ldc, add);                            \
        }                                                                                                              \
        break;
    switch (mr) { INK_EACH_ROW_COUNT(CASE) }
#undef CASE
}

static void i8_rows(int mr, int np, const int16_t *a, int64_t lda, const int8_t *w, int64_t panel_stride,
                    const float *scales, int64_t scale_stride, int32_t groups, float *c, int64_t ldc, int add) {
#define CASE(R)                                                                                                        \
    case R:                                                                                                            \
        if (R <= MR) {                                                                                                 \
            if (NP > 1 && np == NP)                                                                                    \
                i8_tile(R <= MR ? R : 1, NP, a, lda, w, panel_stride, scales, scale_stride, groups, c, ldc, add);      \
            else                                                                                                       \
                i8_tile(R <= MR ? R : 1, 1, a, lda, w, panel_stride, scales, scale_stride, groups, c, ldc, add);       \
        }                                                                                                              \
        break;
    switch (mr) { INK_EACH_ROW_COUNT(CASE) }
#undef CASE
}

/* c (rows, panels * 16) = a (rows, k) * panels; b as in f32_tile. */
static void f32_block(int32_t rows, int32_t panels, const float *a, int64_t lda, const float *b, int64_t ldb,
                      int64_t panel_stride, int32_t k, float *c, int64_t ldc) {
    for (int32_t p = 0, np; p < panels; p += np) {
        np = panels - p < NP ? 1 : NP;
        for (int32_t k0 = 0; k0 == 0 || k0 < k; k0 += KC_F32) {
            int32_t kc = k - k0 < KC_F32 ? k - k0 : KC_F32;
            for (int32_t r = 0; r < rows; r += MR)
                f32_rows(rows - r < MR ? rows - r : MR, np, a + r * lda + k0, lda, b + p * panel_stride + k0 * ldb, ldb,
                         panel_stride, kc, c + r * ldc + (int64_t)p * INK_PANEL, ldc, k0 > 0);
        }
    }
}

/* c (rows, panels * 16) = a (rows, k) int16 * int8 panels, times the row scales; k a multiple of 64. */
static void i8_block(int32_t rows, int32_t panels, const int16_t *a, int64_t lda, const int8_t *w, const float *scales,
                     int32_t k, const float *row_scales, float *c, int64_t ldc) {
    int32_t groups = k / INK_GROUP, step = KC_I8 / INK_GROUP;
    int64_t panel_stride = (int64_t)k * INK_PANEL, scale_stride = (int64_t)groups * INK_PANEL;
    for (int32_t p = 0, np; p < panels; p += np) {
        np = panels - p < NP ? 1 : NP;
        for (int32_t g = 0; g < groups; g += step) {
            int32_t count = groups - g < step ? groups - g : step;
            for (int32_t r = 0; r < rows; r += MR)
                i8_rows(rows - r < MR ? rows - r : MR, np, a + r * lda + (int64_t)g * INK_GROUP, lda,
                        w + p * panel_stride + (int64_t)g * INK_GROUP * INK_PANEL, panel_stride,
                        scales + p * scale_stride + (int64_t)g * INK_PANEL, scale_stride, count,
                        c + r * ldc + (int64_t)p * INK_PANEL, ldc, g > 0);
        }
        for (int32_t r = 0; r < rows; r++) {
            vf s = vf_set1(row_scales[r]);
            float *row = c + r * ldc + (int64_t)p * INK_PANEL;
            for (int32_t j = 0; j < np * NV; j++) vf_store(row + j * VW, vf_mul(vf_load(row + j * VW), s));
        }
    }
}

#endif
