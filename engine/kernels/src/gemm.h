/* Matrix tiles: MR rows by NP panels of 16 channels held in registers while the inner dimension streams past.
 *
 * float32: one accumulator an element, inputs in ascending order, one fused multiply-add each (multiply, then add, on
 * the baseline). An element's value depends on its own row and column only, never on the tile that it fell in.
 * int8: codes meet the multiplier of their group (see engine/weights/int8.py) when they are widened to int16, so that 384
 * inputs add up in int32 and become float32 once. int8-full, where the processor has products of four, or of matrices: rows of
 * 8 bits, x = scale * code + shift, so the product is scale * (codes * w) + shift * (sum of w); a group at a time.
 */
#ifndef INK_GEMM_H
#define INK_GEMM_H

#include "simd.h"

/* Inner-dimension blocks such that a panel stays in a 32 KiB first-level cache while the rows pass. */
#define KC_F32 384
#define KC_I8 384 /* as DEPTH of engine/weights/int8.py: what int32 can sum */
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
    const float *row_scales, *column_sums, *bias;
} finish_t;

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
    for (int t = 0; t < (rows + 2) / 3; t++) w->third[t] += 4;
}
INK_INLINE float float_at(const walk_t *w, const int row) {
    float x;
    memcpy(&x, row_at(w, row), 4);
    return x;
}

/* c (mr, np * 16) (+)= a (mr, k) * b; b: np panels panel_stride apart, k rows of 16 floats ldb apart. */
INK_INLINE void f32_tile(const int mr, const int np, const float *a, int64_t lda, const float *b, int64_t ldb,
                         int64_t panel_stride, int32_t k, float *c, int64_t ldc, int add, const float *bias, ahead_t ahead) {
    vf acc[MR][NP * NV];
#pragma GCC unroll 16
    for (int r = 0; r < mr; r++)
#pragma GCC unroll 16
        for (int j = 0; j < np * NV; j++) acc[r][j] = add ? vf_load(c + r * ldc + j * VW) : vf_set1(0.0f);
    walk_t rows = walk(mr, a, lda * 4);
    for (int32_t i = 0; i < k; i++) {
        look_ahead(&ahead, np, 2);
        vf w[NP * NV];
#pragma GCC unroll 16
        for (int j = 0; j < np * NV; j++) w[j] = vf_load(b + (j / NV) * panel_stride + i * ldb + (j % NV) * VW);
#pragma GCC unroll 16
        for (int r = 0; r < mr; r++) {
            vf x = vf_set1(float_at(&rows, r));
#pragma GCC unroll 16
            for (int j = 0; j < np * NV; j++) acc[r][j] = vf_fma(x, w[j], acc[r][j]);
        }
        step_on(mr, &rows);
    }
#pragma GCC unroll 16
    for (int r = 0; r < mr; r++)
#pragma GCC unroll 16
        for (int j = 0; j < np * NV; j++)
            vf_store(c + r * ldc + j * VW, bias ? vf_add(acc[r][j], vf_load(bias + j * VW)) : acc[r][j]);
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
    int32_t groups;
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

/* The same for rows of int16, lda bytes apart. first: the codes are to be widened: times their multiplier over 128, rounded. */
INK_INLINE void i16_tile(const int mr, const int np, const int first, const char *a, int64_t lda, const i8_panels *b, float *c,
                         int64_t ldc, int add, finish_t finish, ahead_t ahead) {
    vi acc[MR][NP * NV];
#pragma GCC unroll 16
    for (int r = 0; r < mr; r++)
#pragma GCC unroll 16
        for (int j = 0; j < np * NV; j++) acc[r][j] = vi_set1(0);
    walk_t rows = walk(mr, a, lda);
    int16_t *wide = b->wide;
    if (first) {
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
        for (int32_t step = 0; step < b->groups * (INK_GROUP / 2); step++, wide += 2 * INK_PANEL) {
            look_ahead(&ahead, np, 3);
            vi x[NP * NV];
#pragma GCC unroll 16
            for (int j = 0; j < np * NV; j++) x[j] = vi_load(wide + (j / NV) * b->wide_stride + (j % NV) * 2 * VW);
            i16_step(mr, np, &rows, x, acc);
        }
    }
#pragma GCC unroll 16
    for (int j = 0; j < np * NV; j++) {
        vf scale = vf_load(b->scales + (j / NV) * b->scale_stride + (j % NV) * VW);
        vf bias = finish.bias ? vf_load(finish.bias + j * VW) : vf_set1(0.0f);
#pragma GCC unroll 16
        for (int r = 0; r < mr; r++) {
            float *out = c + r * ldc + j * VW;
            vf x = vf_fma(vf_from_vi(acc[r][j]), scale, add ? vf_load(out) : vf_set1(0.0f));
            vf_store(out, finish.row_scales ? vf_fma(x, vf_set1(finish.row_scales[r]), bias) : x);
        }
    }
}

#ifdef INK_MATRIX
/* acc (mr, np * NV) = 8 bits of every row times the codes of a group, which are at w: by pairs of rows and of channels. The last
 * row of an odd number is its own second, whose sums are dropped. */
INK_INLINE void u8_group(const int mr, const int np, const i8_panels *b, const int8_t *w, walk_t *rows, ahead_t *ahead,
                         vi acc[U8_MR][NP * NV]) {
    vi two[U8_MR / 2][NP * INK_PANEL / 2];
#pragma GCC unroll 16
    for (int r = 0; r < mr; r += 2)
#pragma GCC unroll 16
        for (int j = 0; j < np * INK_PANEL / 2; j++) two[r / 2][j] = vi_set1(0);
    for (int32_t step = 0; step < INK_GROUP / U8_STEP; step++, w += U8_STEP * INK_PANEL) {
        look_ahead(ahead, np, 3);
        look_ahead(ahead, np, 3); /* a line for every four inputs, as in other tiles */
        vi some[U8_MR / 2];
#pragma GCC unroll 16
        for (int r = 0; r < mr; r += 2) some[r / 2] = vi_two_rows(row_at(rows, r), row_at(rows, r + 1 < mr ? r + 1 : r));
#pragma GCC unroll 16
        for (int j = 0; j < np * INK_PANEL / 2; j++) {
            vi x = vi_load(w + (j / (INK_PANEL / 2)) * b->wide_stride + (j % (INK_PANEL / 2)) * 2 * U8_STEP);
#pragma GCC unroll 16
            for (int r = 0; r < mr; r += 2) two[r / 2][j] = vi_matrix(two[r / 2][j], some[r / 2], x);
        }
        step_on(mr, rows);
        step_on(mr, rows); /* eight bytes */
    }
#pragma GCC unroll 16
    for (int r = 0; r < mr; r++)
#pragma GCC unroll 16
        for (int j = 0; j < np * NV; j++) {
            vi x = two[r / 2][2 * j], y = two[r / 2][2 * j + 1];
            acc[r][j] = r % 2 ? vi_second_row(x, y) : vi_first_row(x, y);
        }
}
#endif

#ifdef INK_DOT4
/* The same for rows of 8 bits, of codes put side by side in b->wide; first is of no account. */
INK_INLINE void u8_tile(const int mr, const int np, const int first, const char *a, int64_t lda, const i8_panels *b, float *c,
                        int64_t ldc, int add, finish_t finish, ahead_t ahead) {
    (void)first;
    const int8_t *w = (const int8_t *)b->wide;
    float sums[U8_MR * NP * INK_PANEL];
    for (int r = 0; r < mr; r++) {
        if (add)
            memcpy(sums + r * np * INK_PANEL, c + r * ldc, (size_t)(np * INK_PANEL) * sizeof(float));
        else
            memset(sums + r * np * INK_PANEL, 0, (size_t)(np * INK_PANEL) * sizeof(float));
    }
    walk_t rows = walk(mr, a, lda);
    for (int32_t g = 0; g < b->groups; g++) {
        vi acc[U8_MR][NP * NV];
#ifdef INK_MATRIX
        u8_group(mr, np, b, w, &rows, &ahead, acc);
        w += INK_GROUP * INK_PANEL;
#else
#pragma GCC unroll 16
        for (int r = 0; r < mr; r++)
#pragma GCC unroll 16
            for (int j = 0; j < np * NV; j++) acc[r][j] = vi_set1(0);
        for (int32_t step = 0; step < INK_GROUP / 4; step++, w += 4 * INK_PANEL) {
            look_ahead(&ahead, np, 3);
            vi x[NP * NV];
#pragma GCC unroll 16
            for (int j = 0; j < np * NV; j++) x[j] = vi_load(w + (j / NV) * b->wide_stride + (j % NV) * 4 * VW);
#pragma GCC unroll 16
            for (int r = 0; r < mr; r++) {
                vi some = vi_set1(ink_four_bytes(row_at(&rows, r)));
#pragma GCC unroll 16
                for (int j = 0; j < np * NV; j++) acc[r][j] = vi_dot4(acc[r][j], some, x[j]);
            }
            step_on(mr, &rows);
        }
#endif
#pragma GCC unroll 16
        for (int j = 0; j < np * NV; j++) {
            vf s = vf_load(b->scales + (j / NV) * b->scale_stride + (int64_t)g * INK_PANEL + (j % NV) * VW);
#pragma GCC unroll 16
            for (int r = 0; r < mr; r++) {
                float *sum = sums + r * np * INK_PANEL + j * VW;
                vf_store(sum, vf_fma(vf_from_vi(acc[r][j]), s, vf_load(sum)));
            }
        }
    }
    for (int r = 0; r < mr; r++) {
        vf s = vf_set1(finish.row_scales ? finish.row_scales[2 * r] : 1.0f);
        vf shift = vf_set1(finish.row_scales ? finish.row_scales[2 * r + 1] : 0.0f);
        for (int j = 0; j < np * NV; j++) {
            vf x = vf_mul(vf_load(sums + r * np * INK_PANEL + j * VW), s);
            if (finish.column_sums) x = vf_fma(shift, vf_load(finish.column_sums + j * VW), x);
            vf_store(c + r * ldc + j * VW, finish.bias ? vf_add(x, vf_load(finish.bias + j * VW)) : x);
        }
    }
}
#endif

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

typedef void i8_rows_t(int mr, int np, int first, const char *a, int64_t lda, const i8_panels *b, float *c, int64_t ldc,
                       int add, finish_t finish, ahead_t ahead);

#define INK_I8_ROWS(NAME, EACH_CASE)                                                                                   \
    static void NAME(int mr, int np, int first, const char *a, int64_t lda, const i8_panels *b, float *c, int64_t ldc, \
                     int add, finish_t finish, ahead_t ahead) {                                                        \
        switch (mr) { INK_EACH_ROW_COUNT(EACH_CASE) }                                                                  \
    }
#define INK_I8_CASE(R, MOST, TILE)                                                                                     \
    case R:                                                                                                            \
        if (R <= MOST) {                                                                                               \
            if (NP > 1 && np == NP && first)                                                                           \
                TILE(R <= MOST ? R : 1, NP, 1, a, lda, b, c, ldc, add, finish, ahead);                                 \
            else if (NP > 1 && np == NP)                                                                               \
                TILE(R <= MOST ? R : 1, NP, 0, a, lda, b, c, ldc, add, finish, ahead);                                 \
            else if (first)                                                                                            \
                TILE(R <= MOST ? R : 1, 1, 1, a, lda, b, c, ldc, add, finish, ahead);                                  \
            else                                                                                                       \
                TILE(R <= MOST ? R : 1, 1, 0, a, lda, b, c, ldc, add, finish, ahead);                                  \
        }                                                                                                              \
        break;
#define INK_I16_CASE(R) INK_I8_CASE(R, MR, i16_tile)
INK_I8_ROWS(i16_rows, INK_I16_CASE)
#ifdef INK_DOT4
#define INK_U8_CASE(R) INK_I8_CASE(R, U8_MR, u8_tile)
INK_I8_ROWS(u8_rows, INK_U8_CASE)
#endif

/* c (rows, panels * 16) = a (rows, k) * panels + bias; b as in f32_tile, bias maybe NULL. */
static void f32_block(int32_t rows, int32_t panels, const float *a, int64_t lda, const float *b, int64_t ldb,
                      int64_t panel_stride, int32_t k, const float *bias, float *c, int64_t ldc) {
    int32_t tiles = (rows + MR - 1) / MR;
    for (int32_t p = 0, np; p < panels; p += np) {
        np = panels - p < NP ? 1 : NP;
        for (int32_t k0 = 0; k0 == 0 || k0 < k; k0 += KC_F32) {
            int32_t kc = k - k0 < KC_F32 ? k - k0 : KC_F32;
            const float *w = b + p * panel_stride + k0 * ldb;
            const float *next = k0 + kc < k ? w + kc * ldb : b + (p + np) * panel_stride;
            for (int32_t t = 0, r = 0, height; t < tiles; t++, r += height) {
                height = tile_height(rows, t, tiles);
                f32_rows(height, np, a + r * lda + k0, lda, w, ldb, panel_stride, kc,
                         c + r * ldc + (int64_t)p * INK_PANEL, ldc, k0 > 0,
                         bias && k0 + kc >= k ? bias + p * INK_PANEL : NULL,
                         share_ahead(next, (int64_t)kc * INK_PANEL * 4, panel_stride * 4, t, tiles, kc));
            }
        }
    }
}

/* The multiplier of every code of a step: out (groups, 32). multipliers: (groups, 16). */
static void pair_multipliers(const int16_t *multipliers, int32_t groups, int16_t *out) {
    for (int32_t i = 0; i < groups * INK_PANEL; i += VW) vi_store(out + 2 * i, vi_pairs(multipliers + i));
}

#ifdef INK_DOT4
static void u8_codes(const int8_t *w, int64_t panel_stride, int32_t np, int32_t bytes, int8_t *out) {
    for (int32_t j = 0; j < np; j++)
        for (int32_t i = 0; i < bytes; i += U8_STEP * INK_PANEL) ink_u8_codes(w + j * panel_stride + i, out + j * bytes + i);
}
#endif

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
            };
            const int8_t *next = last ? w.codes + np * panel_stride : b.codes + bytes;
            i8_rows_t *work = i16_rows;
#ifdef INK_DOT4
            if (full) {
                u8_codes(b.codes, panel_stride, np, bytes, (int8_t *)room);
                work = u8_rows;
            } else
#endif
                for (int32_t j = 0; j < np; j++)
                    pair_multipliers(w.multipliers + (j * groups + g) * INK_PANEL, count, by + j * b.by_stride);
            for (int32_t t = 0, r = 0, height; t < tiles; t++, r += height) {
                height = tile_height(rows, t, tiles);
                finish_t finish = {0};
                if (last) finish = (finish_t){row_scales + (full ? 2 * r : r), w.column_sums, w.bias};
                int32_t steps = count * INK_GROUP / (full ? 4 : 2);
                work(height, np, t == 0, (const char *)a + r * lda + g * INK_GROUP * size, lda, &b,
                     c + r * ldc + (int64_t)p * INK_PANEL, ldc, g > 0, finish,
                     share_ahead(next, bytes, panel_stride, t, tiles, steps));
            }
        }
    }
}

#endif
