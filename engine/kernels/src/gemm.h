/* Products of blocks of rows with packed weights, tile by tile. */
#ifndef INK_GEMM_H
#define INK_GEMM_H

#include "tile_u8.h"

/* One compiled tile for each number of rows and panels, so that every accumulator is a register. Full tiles are called by
 * themselves besides: what stands between one and the next is some percent of a pass. */
#define INK_EACH_ROW_COUNT(CASE)                                                                                       \
    CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8) CASE(9) CASE(10) CASE(11) CASE(12)

static void f32_rows(int mr, int np, int mode, const float *a, int64_t lda, const float *b, int64_t panel_stride, int32_t k,
                     float *c, int64_t ldc, int add, const float *bias, ahead_t ahead, const chain_t *chain) {
#define CASE(R)                                                                                                        \
    case R:                                                                                                            \
        if (R <= MR) {                                                                                                 \
            if (mode == CHAIN)                                                                                         \
                f32_tile(R <= MR ? R : 1, NP, CHAIN, a, lda, b, panel_stride, k, c, ldc, add, bias, ahead, chain);      \
            else if (NP > 1 && np == NP)                                                                               \
                f32_tile(R <= MR ? R : 1, NP, PLAIN, a, lda, b, panel_stride, k, c, ldc, add, bias, ahead, NULL);       \
            else                                                                                                       \
                f32_tile(R <= MR ? R : 1, 1, PLAIN, a, lda, b, panel_stride, k, c, ldc, add, bias, ahead, NULL);        \
        }                                                                                                              \
        break;
    switch (mr) { INK_EACH_ROW_COUNT(CASE) }
#undef CASE
}

#define INK_I8_ROWS(NAME, EACH_CASE)                                                                                   \
    static void NAME(int mr, int np, int mode, const char *a, int64_t lda, const i8_panels *b, float *c, int64_t ldc,  \
                     int add, finish_t finish, ahead_t ahead, const chain_t *chain) {                                  \
        (void)mode, (void)chain;                                                                                       \
        switch (mr) { INK_EACH_ROW_COUNT(EACH_CASE) }                                                                  \
    }
#define INK_I16_CASE(R)                                                                                                \
    case R:                                                                                                            \
        if (R <= MR) {                                                                                                 \
            if (mode == CHAIN)                                                                                         \
                i16_tile(R <= MR ? R : 1, NP, CHAIN, a, lda, b, c, ldc, add, finish, ahead, chain);                    \
            else if (NP > 1 && np == NP && mode == WIDEN)                                                              \
                i16_tile(R <= MR ? R : 1, NP, WIDEN, a, lda, b, c, ldc, add, finish, ahead, NULL);                     \
            else if (NP > 1 && np == NP)                                                                               \
                i16_tile(R <= MR ? R : 1, NP, PLAIN, a, lda, b, c, ldc, add, finish, ahead, NULL);                     \
            else if (mode == WIDEN)                                                                                    \
                i16_tile(R <= MR ? R : 1, 1, WIDEN, a, lda, b, c, ldc, add, finish, ahead, NULL);                      \
            else                                                                                                       \
                i16_tile(R <= MR ? R : 1, 1, PLAIN, a, lda, b, c, ldc, add, finish, ahead, NULL);                      \
        }                                                                                                              \
        break;
INK_I8_ROWS(i16_rows, INK_I16_CASE)
#ifdef INK_DOT4
#define INK_U8_CASE(R)                                                                                                 \
    case R:                                                                                                            \
        if (R <= U8_MR) {                                                                                              \
            if (NP > 1 && np == NP)                                                                                    \
                u8_tile(R <= U8_MR ? R : 1, NP, a, lda, b, c, ldc, add, finish, ahead);                                \
            else                                                                                                       \
                u8_tile(R <= U8_MR ? R : 1, 1, a, lda, b, c, ldc, add, finish, ahead);                                 \
        }                                                                                                              \
        break;
INK_I8_ROWS(u8_rows, INK_U8_CASE)
#endif

/* c (rows, panels * 16) = a (rows, k) * b + bias; b: panels (k, 16) one behind the other, bias maybe NULL. */
static void f32_block(int32_t rows, int32_t panels, const float *a, int64_t lda, const float *b, int32_t k, const float *bias,
                      float *c, int64_t ldc) {
    int64_t panel_stride = (int64_t)k * INK_PANEL;
    int32_t tiles = (rows + MR - 1) / MR;
    for (int32_t p = 0, np; p < panels; p += np) {
        np = panels - p < NP ? 1 : NP;
        for (int32_t k0 = 0; k0 == 0 || k0 < k; k0 += KC_F32) {
            int32_t kc = k - k0 < KC_F32 ? k - k0 : KC_F32;
            const float *w = b + p * panel_stride + k0 * INK_PANEL;
            const float *next = k0 + kc < k ? w + kc * INK_PANEL : b + (p + np) * panel_stride;
            for (int32_t t = 0, r = 0, height; t < tiles; t++, r += height) {
                height = tile_height(rows, t, tiles);
                const float *x = a + r * lda + k0, *last = bias && k0 + kc >= k ? bias + p * INK_PANEL : NULL;
                float *out = c + r * ldc + (int64_t)p * INK_PANEL;
                ahead_t ahead = share_ahead(next, (int64_t)kc * INK_PANEL * 4, panel_stride * 4, t, tiles, kc);
                if (height == MR && np == NP)
                    f32_tile(MR, NP, PLAIN, x, lda, w, panel_stride, kc, out, ldc, k0 > 0, last, ahead, NULL);
                else
                    f32_rows(height, np, PLAIN, x, lda, w, panel_stride, kc, out, ldc, k0 > 0, last, ahead, NULL);
            }
        }
    }
}

/* The multiplier of every code of a step: out (groups, 32). multipliers: (groups, 16). */
static void pair_multipliers(const int16_t *multipliers, int32_t groups, int16_t *out) {
    for (int32_t i = 0; i < groups * INK_PANEL; i += VW) vi_store(out + 2 * i, vi_pairs(multipliers + i));
}

/* An int8 weight of `groups` groups of inputs: codes, and of int16 rows multipliers (panels, groups, 16) and scales (panels,
 * blocks of KC_I8 inputs, 16), of 8-bit rows scales (panels, groups, 16) and what a row of ones would give. */
typedef struct {
    const int8_t *codes;
    const int16_t *multipliers;
    const float *scales, *column_sums, *bias;
    int32_t groups;
} i8_weight;

/* The same from panel p on. */
INK_INLINE i8_weight from_panel(const i8_weight *w, int32_t p) {
    int32_t blocks = w->multipliers ? (w->groups * INK_GROUP + KC_I8 - 1) / KC_I8 : w->groups;
    i8_weight part = *w;
    part.codes += (int64_t)p * w->groups * INK_GROUP * INK_PANEL;
    part.scales += (int64_t)p * blocks * INK_PANEL;
    if (w->multipliers) part.multipliers += (int64_t)p * w->groups * INK_PANEL;
    if (w->column_sums) part.column_sums += (int64_t)p * INK_PANEL;
    if (w->bias) part.bias += (int64_t)p * INK_PANEL;
    return part;
}

/* c (rows, panels * 16) = a (rows, k) * w, finished. a: int16 codes with a scale a row, or with `full` 8-bit codes with a scale
 * and a shift a row. */
static void i8_block(int32_t rows, int32_t panels, const void *a, const int full, const i8_weight *weight,
                     const float *row_scales, float *c, int64_t ldc) {
    int32_t groups = weight->groups, step = KC_I8 / INK_GROUP, most = full ? U8_MR : MR, tiles = (rows + most - 1) / most;
    int64_t panel_stride = (int64_t)groups * INK_GROUP * INK_PANEL, size = full ? 1 : 2, lda = groups * INK_GROUP * size;
    int16_t room[NP * KC_I8 * INK_PANEL] __attribute__((aligned(64)));
    int16_t by[NP * (KC_I8 / INK_GROUP) * 2 * INK_PANEL] __attribute__((aligned(64)));
    for (int32_t p = 0, np; p < panels; p += np) {
        np = panels - p < NP ? 1 : NP;
        i8_weight w = from_panel(weight, p);
        for (int32_t g = 0; g < groups; g += step) {
            int32_t count = groups - g < step ? groups - g : step, bytes = count * INK_GROUP * INK_PANEL;
            int last = g + count == groups;
            i8_panels b = {
                .codes = w.codes + (int64_t)g * INK_GROUP * INK_PANEL, .code_stride = panel_stride,
                .by = by, .by_stride = count * 2 * INK_PANEL, .wide = room, .wide_stride = bytes,
                .scales = w.scales + (full ? g : g / step) * INK_PANEL,
                .scale_stride = (full ? groups : (groups + step - 1) / step) * INK_PANEL, .groups = count,
                .steps = count * INK_GROUP / 2,
            };
            const int8_t *next = last ? w.codes + np * panel_stride : b.codes + bytes;
#ifdef INK_DOT4
            if (full)
                u8_codes(b.codes, panel_stride, np, bytes, (int8_t *)room);
            else
#endif
                for (int32_t j = 0; j < np; j++)
                    pair_multipliers(w.multipliers + (j * groups + g) * INK_PANEL, count, by + j * b.by_stride);
            for (int32_t t = 0, r = 0, height; t < tiles; t++, r += height) {
                height = tile_height(rows, t, tiles);
                const char *x = (const char *)a + r * lda + g * INK_GROUP * size;
                float *out = c + r * ldc + (int64_t)p * INK_PANEL;
                finish_t finish = {0};
                if (last) finish = (finish_t){row_scales + (full ? 2 * r : r), w.column_sums, w.bias};
                ahead_t ahead = share_ahead(next, bytes, panel_stride, t, tiles, count * INK_GROUP / (full ? 4 : 2));
#ifdef INK_DOT4
                if (full)
                    u8_rows(height, np, PLAIN, x, lda, &b, out, ldc, g > 0, finish, ahead, NULL);
                else
#endif
                    if (height == MR && np == NP && t == 0)
                    i16_tile(MR, NP, WIDEN, x, lda, &b, out, ldc, g > 0, finish, ahead, NULL);
                else if (height == MR && np == NP)
                    i16_tile(MR, NP, PLAIN, x, lda, &b, out, ldc, g > 0, finish, ahead, NULL);
                else
                    i16_rows(height, np, t == 0 ? WIDEN : PLAIN, x, lda, &b, out, ldc, g > 0, finish, ahead, NULL);
            }
        }
    }
}

#endif
