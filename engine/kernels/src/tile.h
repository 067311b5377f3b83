/* Matrix tiles: MR rows by NP panels of 16 channels held in registers while the inner dimension streams past.
 *
 * float32: one accumulator an element, inputs in ascending order, one fused multiply-add each (multiply, then add, on
 * the baseline). An element's value depends on its own row and column only, never on the tile that it fell in; what chains of
 * tiles add up is told in strassen.h.
 * int8: codes meet the multiplier of their group (see engine/weights/int8.py) when they are widened to int16, so that 384
 * inputs add up in int32 and become float32 once. int8-full, where the processor has products of four, or of matrices: rows of
 * 8 bits, x = scale * code + shift, so the product is scale * (codes * w) + shift * (sum of w); a group at a time.
 */
#ifndef INK_TILE_H
#define INK_TILE_H

#include "pairs.h"

/* Rows of one work item: their activations stay in the second-level cache while the panels pass. */
#define ROW_BLOCK (MR * (144 / MR))

/* Of rows of 8 bits: inputs a step, rows a tile, and how the codes of a step are put side by side. */
#ifdef INK_MATRIX
#define U8_STEP 8
#define U8_MR 6 /* whole pairs of rows */
#define ink_u8_codes ink_eights
#else
#define U8_STEP 4
#define U8_MR MR
#define ink_u8_codes ink_quads
#endif

/* Weights are read in the order of their addresses, each panel once from memory and then, for every further tile of rows,
 * from the cache. So that the first tile does not wait, every tile asks for its share of the panels that come next: at every
 * step for the cache line of `next`, which moves on by `pace` bytes. */
typedef struct {
    const char *next; /* in the first of the panels */
    int64_t stride;   /* bytes from panel to panel */
    int64_t pace;
} ahead_t;

/* LEVEL: 3 into the first-level cache (int8 panels are small), 2 into the second. */
#define look_ahead(ahead, panels, LEVEL)                                                                               \
    for (int j = 0; j < (panels); j++) __builtin_prefetch((ahead)->next + j * (ahead)->stride, 0, LEVEL);              \
    (ahead)->next += (ahead)->pace

/* The share of tile number `tile` of `tiles` in panels of `bytes` each from `start` on, in `steps`. */
INK_INLINE ahead_t share_ahead(const void *start, int64_t bytes, int64_t stride, int32_t tile, int32_t tiles,
                               int32_t steps) {
    int64_t pace = (bytes / tiles + steps - 1) / steps;
    return (ahead_t){(const char *)start + tile * pace * steps, stride, pace};
}

/* Rows fall into as few tiles as MR allows, and those into heights that differ by one at most: a tile of one or two rows
 * takes as long as one of four. */
INK_INLINE int32_t tile_height(int32_t rows, int32_t tile, int32_t tiles) { return rows / tiles + (tile < rows % tiles); }

/* What happens to a finished tile: c = c * scale of the row + bias of the column; NULL where it is not finished yet, or a part
 * is left out. Rows of 8 bits have a scale and a shift each: c = c * scale + shift * column sum + bias. */
typedef struct {
    const float *row_scales, *column_sums, *bias; /* in a CHAIN, of every other row */
} finish_t;

/* What a tile does besides: WIDEN its codes first (int16 rows: times their multiplier over 128, rounded), or CHAIN its sums to
 * those of others, which are (rows, np * 16) int32 or float32, or MAKE sums of weights besides. */
enum { PLAIN, WIDEN, CHAIN, MAKE };
typedef struct {
    const void *from, *plus; /* sums to go on from, and to have on top of those that go to c; NULL: none */
    void *to;                /* where its sums go without those; NULL: nowhere */
    const float *factors;    /* float32: what each row's sums are multiplied by on their way to c; NULL: nothing */
    int32_t lost;            /* nothing of the last row is wanted in c */
    float *made;             /* where made sums of weights go, a panel behind the other */
} chain_t;

/* A sum of the quarters of weights, see strassen.h: 3 T1, 4 T2, 5 T3, 6 -T4. b: where it begins in B11, below it B21 after k rows,
 * and to the right B12. made: where it will lie, each of them `size` behind the one before. */
INK_INLINE vf weight_sum(const int kind, const float *b, int64_t k, int64_t right, const float *made, int64_t size) {
    const int64_t below = k * INK_PANEL;
    if (kind == 3) return vf_sub(vf_load(b + right), vf_load(b));
    if (kind == 4) return vf_sub(vf_load(b + right + below), vf_load(made - size));
    if (kind == 5) return vf_sub(vf_load(b + right + below), vf_load(b + right));
    return vf_sub(vf_load(b + below), vf_load(made - 2 * size));
}

/* Rows of a matrix walked side by side: a pointer for every three of them, so that each is at a pointer plus nothing, the
 * stride or twice the stride, which needs no instruction of its own. In bytes. */
typedef struct {
    const char *third[(U8_MR + 2) / 3];
    int64_t stride;
} walk_t;

INK_INLINE walk_t walk(const int rows, const void *x, int64_t stride) {
    walk_t w = {.stride = stride};
#pragma GCC unroll 16
    for (int t = 0; t < (rows + 2) / 3; t++) w.third[t] = (const char *)x + 3 * t * stride;
    return w;
}
INK_INLINE const char *row_at(const walk_t *w, const int row) { return w->third[row / 3] + (row % 3) * w->stride; }
INK_INLINE void step_on(const int rows, walk_t *w) { /* four bytes */
#pragma GCC unroll 16
    for (int t = 0; t < (rows + 2) / 3; t++) {
        w->third[t] += 4;
        __asm__("" : "+r"(w->third[t])); /* or the compiler keeps an address for every row, in memory */
    }
}
INK_INLINE float float_at(const walk_t *w, const int row) {
    float x;
    memcpy(&x, row_at(w, row), 4);
    return x;
}

/* c (mr, np * 16) (+)= a (mr, k) * b; b: np panels panel_stride apart, k rows of 16 floats. c is NULL where a chain's sums go
 * elsewhere. mode MAKE + kind: of 2 np panels of 2 k rows that weight_sum takes the place of b. */
INK_INLINE void f32_tile(const int mr, const int np, const int mode, const float *a, int64_t lda, const float *b,
                         int64_t panel_stride, int32_t k, float *c, int64_t ldc, int add, const float *bias, ahead_t ahead,
                         const chain_t *chain) {
    vf acc[MR][NP * NV];
    const float *from = mode >= CHAIN ? chain->from : add ? c : NULL;
    const int64_t ldf = mode >= CHAIN ? np * INK_PANEL : ldc;
#pragma GCC unroll 16
    for (int r = 0; r < mr; r++)
#pragma GCC unroll 16
        for (int j = 0; j < np * NV; j++) acc[r][j] = from ? vf_load(from + r * ldf + j * VW) : vf_set1(0.0f);
    float *made = mode >= MAKE ? chain->made : NULL;
    walk_t rows = walk(mr, a, lda * 4);
    for (int32_t i = 0; i < k; i++) {
        if (mode == PLAIN) {
            look_ahead(&ahead, np, 2);
        } else {
            look_ahead(&ahead, 1, 3);
        }
        vf w[NP * NV];
#pragma GCC unroll 16
        for (int j = 0; j < np * NV; j++) {
            const float *x = b + (j / NV) * panel_stride + (int64_t)i * INK_PANEL + (j % NV) * VW;
            if (mode >= MAKE) {
                float *to = made + (j / NV) * (int64_t)k * INK_PANEL + (j % NV) * VW;
                w[j] = weight_sum(mode - MAKE, x, k, np * panel_stride, to, np * (int64_t)k * INK_PANEL);
                vf_store(to, w[j]);
            } else {
                w[j] = vf_load(x);
            }
        }
        if (mode >= MAKE) made += INK_PANEL;
#pragma GCC unroll 16
        for (int r = 0; r < mr; r++) {
            vf x = vf_set1(float_at(&rows, r));
#pragma GCC unroll 16
            for (int j = 0; j < np * NV; j++) acc[r][j] = vf_fma(x, w[j], acc[r][j]);
        }
        step_on(mr, &rows);
    }
    if (mode >= CHAIN && chain->to) {
#pragma GCC unroll 16
        for (int r = 0; r < mr; r++)
#pragma GCC unroll 16
            for (int j = 0; j < np * NV; j++) {
                float *to = (float *)chain->to + (r * np * NV + j) * VW;
                vf_store(to, acc[r][j]);
            }
    }
    if (mode >= CHAIN && !c) return;
#pragma GCC unroll 16
    for (int r = 0; r < mr; r++)
#pragma GCC unroll 16
        for (int j = 0; j < np * NV; j++) {
            float *out = c + r * ldc + j * VW;
            if (mode >= CHAIN && chain->plus)
                acc[r][j] = vf_add(acc[r][j], vf_load((const float *)chain->plus + (r * np * NV + j) * VW));
            if (mode >= CHAIN && chain->factors) acc[r][j] = vf_mul(acc[r][j], vf_set1(chain->factors[r]));
            if (mode >= CHAIN && add) acc[r][j] = vf_add(acc[r][j], vf_load(out));
            vf_store(out, bias ? vf_add(acc[r][j], vf_load(bias + j * VW)) : acc[r][j]);
        }
}

/* np int8 panels as a block of rows meets them. codes, code_stride apart; of int16 rows also the multiplier of every code of a
 * step, 32 a group, by_stride apart, and room for the widened codes, wide_stride apart, which the first tile of rows fills and
 * the others read. scales, scale_stride apart: 16 for int16 rows, 16 a group for rows of 8 bits. */
typedef struct {
    const int8_t *codes;
    const int16_t *by;
    int16_t *wide;
    const float *scales;
    int64_t code_stride, by_stride, wide_stride, scale_stride;
    int32_t groups, steps; /* steps: pairs of inputs */
} i8_panels;

/* One step: two int16 of every row times their codes. */
INK_INLINE void i16_step(const int mr, const int np, walk_t *rows, const vi *x, vi acc[MR][NP * NV]) {
#pragma GCC unroll 16
    for (int r = 0; r < mr; r++) {
#ifdef INK_DOT_PAIR
        vi_dot_pair(&acc[r][0], &acc[r][1], row_at(rows, r), x[0], x[1]);
#else
        vi some = vi_set1(ink_four_bytes(row_at(rows, r)));
#pragma GCC unroll 16
        for (int j = 0; j < np * NV; j++) acc[r][j] = vi_dot(acc[r][j], some, x[j]);
#endif
    }
    step_on(mr, rows);
}

/* The same for rows of int16, lda bytes apart. */
INK_INLINE void i16_tile(const int mr, const int np, const int mode, const char *a, int64_t lda, const i8_panels *b, float *c,
                         int64_t ldc, int add, finish_t finish, ahead_t ahead, const chain_t *chain) {
    vi acc[MR][NP * NV];
    const int32_t *from = mode == CHAIN ? chain->from : NULL;
#pragma GCC unroll 16
    for (int r = 0; r < mr; r++)
#pragma GCC unroll 16
        for (int j = 0; j < np * NV; j++) acc[r][j] = from ? vi_load(from + (r * np * NV + j) * VW) : vi_set1(0);
    walk_t rows = walk(mr, a, lda);
    int16_t *wide = b->wide;
    if (mode == WIDEN) {
        const int8_t *codes = b->codes;
        const int16_t *by = b->by;
        for (int32_t g = 0; g < b->groups; g++, by += 2 * INK_PANEL)
            for (int32_t step = 0; step < INK_GROUP / 2; step++, codes += 2 * INK_PANEL, wide += 2 * INK_PANEL) {
                look_ahead(&ahead, np, 3);
                vi x[NP * NV];
#pragma GCC unroll 16
                for (int j = 0; j < np * NV; j++) {
                    int64_t panel = j / NV, lane = (j % NV) * 2 * VW;
                    x[j] = vi_mul_round(vi_widen_high(codes + panel * b->code_stride + lane),
                                        vi_load(by + panel * b->by_stride + lane));
                    vi_store(wide + panel * b->wide_stride + lane, x[j]);
                }
                i16_step(mr, np, &rows, x, acc);
            }
    } else {
        for (int32_t step = 0; step < b->steps; step++, wide += 2 * INK_PANEL) {
            if (mode == PLAIN) { look_ahead(&ahead, np, 3); }
            vi x[NP * NV];
#pragma GCC unroll 16
            for (int j = 0; j < np * NV; j++) x[j] = vi_load(wide + (j / NV) * b->wide_stride + (j % NV) * 2 * VW);
            i16_step(mr, np, &rows, x, acc);
        }
    }
    if (mode == CHAIN && chain->to) {
#pragma GCC unroll 16
        for (int r = 0; r < mr; r++)
#pragma GCC unroll 16
            for (int j = 0; j < np * NV; j++) {
                int32_t *to = (int32_t *)chain->to + (r * np * NV + j) * VW;
                vi_store(to, acc[r][j]);
            }
    }
    if (mode == CHAIN && !c) return;
    if (mode == CHAIN && chain->plus) {
#pragma GCC unroll 16
        for (int r = 0; r < mr; r++)
#pragma GCC unroll 16
            for (int j = 0; j < np * NV; j++)
                acc[r][j] = vi_add(acc[r][j], vi_load((const int32_t *)chain->plus + (r * np * NV + j) * VW));
    }
#pragma GCC unroll 16
    for (int j = 0; j < np * NV; j++) {
        vf scale = vf_load(b->scales + (j / NV) * b->scale_stride + (j % NV) * VW);
        vf bias = finish.bias ? vf_load(finish.bias + j * VW) : vf_set1(0.0f);
#pragma GCC unroll 16
        for (int r = 0; r < mr; r++) {
            if (mode == CHAIN && r == mr - 1 && chain->lost) continue;
            float *out = c + r * ldc + j * VW;
            vf x = vf_fma(vf_from_vi(acc[r][j]), scale, add ? vf_load(out) : vf_set1(0.0f));
            vf_store(out, finish.row_scales ? vf_fma(x, vf_set1(finish.row_scales[mode == CHAIN ? 2 * r : r]), bias) : x);
        }
    }
}

#endif
