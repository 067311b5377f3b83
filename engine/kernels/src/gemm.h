/* Matrix tiles: MR rows by NP panels of 16 channels held in registers while the inner dimension streams past.
 *
 * float32: one accumulator an element, inputs in ascending order, one fused multiply-add each (multiply, then add, on
 * the baseline). An element's value depends on its own row and column only, never on the tile that it fell in.
 * int8: s16 x s8 pairs summed in int32 over a group of 64 inputs (127 * 32767 * 64 = 2.7e8 < 2^31), then
 * one convert and multiply-add into float32 with the group's scale. int8-full, where the processor has products of four:
 * rows of 8 bits, x = scale * code + shift, so the product is scale * (codes * w) + shift * (sum of w). */
#ifndef INK_GEMM_H
#define INK_GEMM_H

#include "simd.h"

/* Inner-dimension blocks such that a panel stays in a 32 KiB first-level cache while the rows pass. */
#define KC_F32 384
#define KC_I8 384
/* Rows of one work item: their activations stay in the second-level cache while the panels pass. */
#define ROW_BLOCK (MR * (144 / MR))

/* Weights are read in the order of their addresses, each panel once from memory and then, for every further tile of rows,
 * from the cache. So that the first tile does not wait, every tile asks for its share of the panels that come next. */
typedef struct {
    const char *next; /* where the share begins in the first of the panels */
    int64_t stride;   /* bytes from panel to panel */
    int32_t lines;    /* cache lines of each panel to ask for at one look */
} ahead_t;

#define INK_STEP 8 /* inner steps of float32 between two looks ahead; of int8 it is a group */
#define INK_LINE 64

/* LEVEL: 3 into the first-level cache (int8 panels are small), 2 into the second. */
#define look_ahead(ahead, panels, LEVEL)                                                                               \
    for (int32_t line = 0; line < (ahead)->lines; line++, (ahead)->next += INK_LINE)                                   \
        for (int j = 0; j < (panels); j++) __builtin_prefetch((ahead)->next + j * (ahead)->stride, 0, LEVEL)

/* The share of tile number `tile` of `tiles` in panels of `bytes` each from `start` on (NULL: nothing), read in `looks`. */
INK_INLINE ahead_t share_ahead(const void *start, int64_t bytes, int64_t stride, int32_t tile, int32_t tiles,
                               int32_t looks) {
    if (!start) return (ahead_t){0};
    int32_t share = ((int32_t)(bytes / INK_LINE) + tiles - 1) / tiles;
    return (ahead_t){(const char *)start + (int64_t)tile * share * INK_LINE, stride, (share + looks - 1) / looks};
}

/* Rows fall into as few tiles as MR allows, and those into heights that differ by one at most: a tile of one or two rows
 * takes as long as one of four. */
INK_INLINE int32_t tile_height(int32_t rows, int32_t tile, int32_t tiles) { return rows / tiles + (tile < rows % tiles); }

/* What happens to a finished tile. c = c * row_scales[row] + row_shifts[row] * column_sums[column] + bias[column]; NULL leaves
 * a part out. row_scales and row_shifts: two floats a row apart where there are shifts. */
typedef struct {
    const float *row_scales, *row_shifts, *column_sums, *bias;
} finish_t;

/* c (mr, np * 16) (+)= a (mr, k) * b; b: np panels panel_stride apart, k rows of 16 floats ldb apart. */
INK_INLINE void f32_tile(const int mr, const int np, const float *a, int64_t lda, const float *b, int64_t ldb,
                         int64_t panel_stride, int32_t k, float *c, int64_t ldc, int add, const float *bias, ahead_t ahead) {
    vf acc[MR][NP * NV];
#pragma GCC unroll 16
    for (int r = 0; r < mr; r++)
#pragma GCC unroll 16
        for (int j = 0; j < np * NV; j++) acc[r][j] = add ? vf_load(c + r * ldc + j * VW) : vf_set1(0.0f);
    for (int32_t i = 0; i < k;) {
        look_ahead(&ahead, np, 2);
        for (int32_t stop = k - i < INK_STEP ? k : i + INK_STEP; i < stop; i++) {
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
    }
#pragma GCC unroll 16
    for (int r = 0; r < mr; r++)
#pragma GCC unroll 16
        for (int j = 0; j < np * NV; j++)
            vf_store(c + r * ldc + j * VW, bias ? vf_add(acc[r][j], vf_load(bias + j * VW)) : acc[r][j]);
}

/* How a tile reads codes: s8 pairs as they are stored, the same widened to int16, or quads of s8 for rows of 8 bits. */
enum { CODES_NARROW, CODES_WIDE, CODES_QUADS };

/* One step of the inner dimension, two int16 or four 8-bit numbers of every row times their codes: acc (+)= the products;
 * first: nothing is there to add to. */
INK_INLINE void i8_step(const int mr, const int np, const int codes, const int first, const char *a, int64_t lda,
                        const void *w, int64_t panel_stride, int64_t step, vi acc[MR][NP * NV]) {
    vi x[NP * NV];
#pragma GCC unroll 16
    for (int j = 0; j < np * NV; j++) {
        int64_t lane = (j / NV) * panel_stride + (j % NV) * 2 * VW, at = lane + step * 2 * INK_PANEL;
        if (codes == CODES_QUADS) x[j] = vi_load((const int8_t *)w + lane + (j % NV) * 2 * VW + step * 4 * INK_PANEL);
        if (codes == CODES_WIDE) x[j] = vi_load((const int16_t *)w + at);
        if (codes == CODES_NARROW) x[j] = vi_widen((const int8_t *)w + at);
    }
#pragma GCC unroll 16
    for (int r = 0; r < mr; r++) {
        vi some = vi_set1(ink_four_bytes(a + r * lda + 4 * step));
#pragma GCC unroll 16
        for (int j = 0; j < np * NV; j++) {
            if (codes == CODES_QUADS)
                acc[r][j] = vi_dot4(first ? vi_set1(0) : acc[r][j], some, x[j]);
            else
                acc[r][j] = first ? vi_mul2(some, x[j]) : vi_dot(acc[r][j], some, x[j]);
        }
    }
}

/* The same for rows of int16 or of 8 bits, lda bytes apart, and int8 panels: w: np panels panel_stride codes apart, in the
 * form that `codes` says. scales: 16 a group, scale_stride floats from panel to panel. */
INK_INLINE void i8_tile(const int mr, const int np, const int codes, const char *a, int64_t lda, const void *w,
                        int64_t panel_stride, const float *scales, int64_t scale_stride, int32_t groups, float *c,
                        int64_t ldc, int add, finish_t finish, ahead_t ahead) {
    const int steps = codes == CODES_QUADS ? INK_GROUP / 4 : INK_GROUP / 2;
    float sums[MR * NP * INK_PANEL];
    for (int r = 0; r < mr; r++) {
        if (add)
            memcpy(sums + r * np * INK_PANEL, c + r * ldc, (size_t)(np * INK_PANEL) * sizeof(float));
        else
            memset(sums + r * np * INK_PANEL, 0, (size_t)(np * INK_PANEL) * sizeof(float));
    }
    for (int32_t g = 0; g < groups; g++) {
        look_ahead(&ahead, np, 3);
        vi acc[MR][NP * NV];
        int32_t p = g * steps, stop = p + steps;
        i8_step(mr, np, codes, 1, a, lda, w, panel_stride, p, acc);
        while (++p < stop) i8_step(mr, np, codes, 0, a, lda, w, panel_stride, p, acc);
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
    const int apart = codes == CODES_QUADS ? 2 : 1;
    for (int r = 0; r < mr; r++) {
        vf s = vf_set1(finish.row_scales ? finish.row_scales[r * apart] : 1.0f);
        vf shift = vf_set1(finish.row_shifts ? finish.row_shifts[r * apart] : 0.0f);
        for (int j = 0; j < np * NV; j++) {
            vf x = vf_mul(vf_load(sums + r * np * INK_PANEL + j * VW), s);
            if (codes == CODES_QUADS && finish.row_shifts) x = vf_fma(shift, vf_load(finish.column_sums + j * VW), x);
            vf_store(c + r * ldc + j * VW, finish.bias ? vf_add(x, vf_load(finish.bias + j * VW)) : x);
        }
    }
}

/* One compiled tile for each number of rows and panels, so that every accumulator is a register. */
#define INK_EACH_ROW_COUNT(CASE)                                                                                       \
    CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8) CASE(9) CASE(10) CASE(11) CASE(12)

static void f32_rows(int mr, int np, const float *a, int64_t lda, const float *b, int64_t ldb, int64_t panel_stride,
                     int32_t k, float *c, int64_t ldc, int add, const float *bias, ahead_t ahead) {
#define CASE(R)                                                                                                        \
    case R:                                                                                                            \
        if (R <= MR) {                                                                                                 \
            if (NP > 1 && np == NP)                                                                                    \
                f32_tile(R <= MR ? R : 1, NP, a, lda, b, ldb, panel_stride, k, c, ldc, add, bias, ahead);                    \
            else                                                                                                       \
                f32_tile(R <= MR ? R : 1, 1, a, lda, b, ldb, panel_stride, k, c, ldc, add, bias, ahead);                     \
        }                                                                                                              \
        break;
    switch (mr) { INK_EACH_ROW_COUNT(CASE) }
#undef CASE
}

typedef void i8_rows_t(int mr, int np, const char *a, int64_t lda, const void *w, int64_t panel_stride, const float *scales,
                       int64_t scale_stride, int32_t groups, float *c, int64_t ldc, int add, finish_t finish, ahead_t ahead);

#define INK_I8_ROWS(NAME, CODES)                                                                                       \
    static void NAME(int mr, int np, const char *a, int64_t lda, const void *w, int64_t panel_stride,                  \
                     const float *scales, int64_t scale_stride, int32_t groups, float *c, int64_t ldc, int add,        \
                     finish_t finish, ahead_t ahead) {                                                                 \
        enum { codes = CODES };                                                                                        \
        switch (mr) { INK_EACH_ROW_COUNT(CASE) }                                                                       \
    }
#define CASE(R)                                                                                                        \
    case R:                                                                                                            \
        if (R <= MR) {                                                                                                 \
            if (NP > 1 && np == NP)                                                                                    \
                i8_tile(R <= MR ? R : 1, NP, codes, a, lda, w, panel_stride, scales, scale_stride, groups, c, ldc,     \
                        add, finish, ahead);                                                                           \
            else                                                                                                       \
                i8_tile(R <= MR ? R : 1, 1, codes, a, lda, w, panel_stride, scales, scale_stride, groups, c, ldc, add, \
                        finish, ahead);                                                                                \
        }                                                                                                              \
        break;
INK_I8_ROWS(narrow_rows, CODES_NARROW)
INK_I8_ROWS(wide_rows, CODES_WIDE)
#ifdef INK_DOT4
INK_I8_ROWS(quad_rows, CODES_QUADS)
#endif
#undef CASE

/* c (rows, panels * 16) = a (rows, k) * panels + bias; b as in f32_tile, bias maybe NULL. cached: b is in the cache. */
static void f32_block(int32_t rows, int32_t panels, const float *a, int64_t lda, const float *b, int64_t ldb,
                      int64_t panel_stride, int32_t k, const float *bias, int cached, float *c, int64_t ldc) {
    int32_t tiles = (rows + MR - 1) / MR;
    for (int32_t p = 0, np; p < panels; p += np) {
        np = panels - p < NP ? 1 : NP;
        for (int32_t k0 = 0; k0 == 0 || k0 < k; k0 += KC_F32) {
            int32_t kc = k - k0 < KC_F32 ? k - k0 : KC_F32, steps = (kc + INK_STEP - 1) / INK_STEP;
            const float *w = b + p * panel_stride + k0 * ldb;
            const float *next = cached ? NULL : k0 + kc < k ? w + kc * ldb : b + (p + np) * panel_stride;
            for (int32_t t = 0, r = 0, height; t < tiles; t++, r += height) {
                height = tile_height(rows, t, tiles);
                f32_rows(height, np, a + r * lda + k0, lda, w, ldb, panel_stride, kc,
                         c + r * ldc + (int64_t)p * INK_PANEL, ldc, k0 > 0,
                         bias && k0 + kc >= k ? bias + p * INK_PANEL : NULL,
                         share_ahead(next, (int64_t)kc * INK_PANEL * 4, panel_stride * 4, t, tiles, steps));
            }
        }
    }
}

/* From this many tiles of rows on it pays to widen a panel's codes once. */
#define INK_WIDEN_TILES 6

/* A block of panels as a tile reads it: widened to int16, or pairs put together to quads. */
static void widen_codes(const int8_t *w, int64_t panel_stride, int32_t np, int32_t bytes, int16_t *out) {
    for (int32_t j = 0; j < np; j++)
        for (int32_t i = 0; i < bytes; i += 2 * VW) vi_store(out + j * bytes + i, vi_widen(w + j * panel_stride + i));
}

#ifdef INK_DOT4
static void quad_codes(const int8_t *w, int64_t panel_stride, int32_t np, int32_t bytes, int8_t *out) {
    for (int32_t j = 0; j < np; j++)
        for (int32_t i = 0; i < bytes; i += 4 * INK_PANEL) ink_quads(w + j * panel_stride + i, out + j * bytes + i);
}
#endif

/* c (rows, panels * 16) = a (rows, k) * int8 panels, finished; k a multiple of 64. a: int16 codes with a scale a row, or with
 * `full` 8-bit codes with a scale and a shift a row; column_sums then: what a row of ones would give. */
static void i8_block(int32_t rows, int32_t panels, const void *a, const int full, const int8_t *w, const float *scales,
                     int32_t k, const float *row_scales, const float *column_sums, const float *bias, float *c,
                     int64_t ldc) {
    int32_t groups = k / INK_GROUP, step = KC_I8 / INK_GROUP, tiles = (rows + MR - 1) / MR;
    int64_t panel_stride = (int64_t)k * INK_PANEL, scale_stride = (int64_t)groups * INK_PANEL;
    int64_t size = full ? 1 : 2, lda = k * size;
    int16_t room[NP * KC_I8 * INK_PANEL] __attribute__((aligned(64)));
    for (int32_t p = 0, np; p < panels; p += np) {
        np = panels - p < NP ? 1 : NP;
        for (int32_t g = 0; g < groups; g += step) {
            int32_t count = groups - g < step ? groups - g : step, bytes = count * INK_GROUP * INK_PANEL;
            int last = g + count == groups;
            const int8_t *codes = w + p * panel_stride + (int64_t)g * INK_GROUP * INK_PANEL;
            const int8_t *next = last ? w + (p + np) * panel_stride : codes + bytes;
            const void *read = room;
            int64_t stride = bytes;
            i8_rows_t *work = wide_rows;
#ifdef INK_DOT4
            if (full) {
                quad_codes(codes, panel_stride, np, bytes, (int8_t *)room);
                work = quad_rows;
            } else
#endif
                if (tiles >= INK_WIDEN_TILES) {
                widen_codes(codes, panel_stride, np, bytes, room);
            } else {
                read = codes, stride = panel_stride, work = narrow_rows;
            }
            for (int32_t t = 0, r = 0, height; t < tiles; t++, r += height) {
                height = tile_height(rows, t, tiles);
                finish_t finish = {0};
                if (last) {
                    finish.row_scales = row_scales + (full ? 2 * r : r);
                    finish.row_shifts = full ? finish.row_scales + 1 : NULL;
                    finish.column_sums = full ? column_sums + p * INK_PANEL : NULL;
                    finish.bias = bias ? bias + p * INK_PANEL : NULL;
                }
                work(height, np, (const char *)a + r * lda + g * INK_GROUP * size, lda, read, stride,
                     scales + p * scale_stride + (int64_t)g * INK_PANEL, scale_stride, count,
                     c + r * ldc + (int64_t)p * INK_PANEL, ldc, g > 0, finish,
                     share_ahead(next, bytes, panel_stride, t, tiles, count));
            }
        }
    }
}

#endif
