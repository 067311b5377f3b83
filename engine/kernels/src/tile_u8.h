/* The tile of int8-full: rows of 8 bits, where the processor has products of four, or of matrices. */
#ifndef INK_TILE_U8_H
#define INK_TILE_U8_H

#include "tile.h"

#ifdef INK_DOT4
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

/* As i16_tile for rows of 8 bits, of codes put side by side in b->wide. */
INK_INLINE void u8_tile(const int mr, const int np, const char *a, int64_t lda, const i8_panels *b, float *c,
                        int64_t ldc, int add, finish_t finish, ahead_t ahead) {
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

/* The codes of np panels put side by side: out (np, bytes). */
static void u8_codes(const int8_t *w, int64_t panel_stride, int32_t np, int32_t bytes, int8_t *out) {
    for (int32_t j = 0; j < np; j++)
        for (int32_t i = 0; i < bytes; i += U8_STEP * INK_PANEL) ink_u8_codes(w + j * panel_stride + i, out + j * bytes + i);
}
#endif

#endif
