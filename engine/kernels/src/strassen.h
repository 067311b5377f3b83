/* Matrix products by Winograd's form of Strassen's scheme: seven products of quarters do the work of eight.
 *
 * Rows 2 i and 2 i + 1, the halves of a block of inputs, and NP panels beside NP others are the quarters of
 * [C11 C12; C21 C22] = [A11 A12; A21 A22] * [B11 B12; B21 B22]. With the sums of pairs.h and
 * T1 = B12 - B11, T2 = B22 - T1, T3 = B22 - B12, T4 = T2 - B21:
 *     V = S1 T1,  U1 = A11 B11,  C11 = U1 + A12 B21,  U2 = U1 + S2 T2,  U3 = U2 + S3 T3,  C22 = U3 + V,
 *     C21 = U3 - A22 T4,  C12 = U2 + S4 B22 + V.
 * In integers nothing is rounded, so that the results are those of the plain products, bit for bit. In float32 the rounding
 * errors of both rows and both panels meet, two to three times those of the plain products; for that both rows are made about
 * equally large, and single large numbers left out (pairs.h).
 */
#ifndef INK_STRASSEN_H
#define INK_STRASSEN_H

#include "gemm.h"
#include "pairs.h"
#include "rows.h"

/* Fewer rows of int16 are quicker without. */
#define PAIRED_ROWS (MR == 12 ? 48 : 32)
#define MOST_PAIRS (ROW_BLOCK / 2)

/* Quarters at work. Strides in bytes, but for ldc. */
typedef struct {
    const char *rows[7]; /* A11, A12, A22, S1, S2, S3, S4 */
    int64_t row_stride[7];
    const char *codes[7]; /* B11, B21, B22, T1, T2, T3, -T4 */
    int64_t panel_stride[7];
    int32_t pairs, steps, odd; /* odd: the last pair has one row */
    const float *weights;      /* of float32: B11, whose sums the first tile makes; NULL where they are made already */
    int64_t weight_stride;     /* in numbers */
    const float *scales;       /* of int8: of a block, 16 a panel, scale_stride numbers apart */
    int64_t scale_stride;
    const float *factors;      /* of float32: of second rows, one a pair */
    char *u[3]; /* room for sums: (pairs, np * 16) each */
    float *c;
    int64_t ldc;
    int add;
    finish_t finish;
    const char *next; /* panels to ask for, of `bytes` each and next_stride apart */
    int64_t bytes, next_stride;
} quarters_t;

/* Product number m, in the order above, and what becomes of it. Every case is compiled by itself: in tiles as short as these it
 * shows what stands between one and the next. */
INK_INLINE void product(const int m, const int wide, const quarters_t *q) {
    static const struct {
        int8_t rows, codes, from, to, plus, row, column; /* of u: 1, 2, 3, or 0; c: halves of rows and columns, or -1 */
    } all[7] = {
        {3, 3, 0, 3, 0, -1, 0}, /* to V */
        {0, 0, 0, 1, 0, -1, 0}, /* to U1 */
        {1, 1, 1, 0, 0, 0, 0},  /* from U1 to C11 */
        {4, 4, 1, 1, 0, -1, 0}, /* from U1 to U2, in its place */
        {5, 5, 1, 2, 3, 1, 1},  /* from U2 to U3, and with V to C22 */
        {2, 6, 2, 0, 0, 1, 0},  /* from U3 to C21 */
        {6, 2, 1, 0, 3, 0, 1},  /* from U2 with V to C12 */
    };
    const int row = all[m].row, column = all[m].column;
    const char *a = q->rows[all[m].rows];
    const int64_t lda = q->row_stride[all[m].rows], apart = q->panel_stride[all[m].codes], size = (int64_t)MR * NP * INK_PANEL * 4;
    chain_t chain = {0};
    if (all[m].from) chain.from = q->u[all[m].from - 1];
    if (all[m].to) chain.to = q->u[all[m].to - 1];
    if (all[m].plus) chain.plus = q->u[all[m].plus - 1];
    if (row == 1 && !wide) chain.factors = q->factors;
    float *c = row < 0 ? NULL : q->c + row * q->ldc + column * NP * INK_PANEL;
    finish_t finish = {0};
    if (row >= 0) {
        if (q->finish.row_scales) finish.row_scales = q->finish.row_scales + row;
        if (q->finish.bias) finish.bias = q->finish.bias + column * NP * INK_PANEL;
    }
    const i8_panels b = {.wide = (int16_t *)q->codes[all[m].codes], .wide_stride = apart / 2, .steps = q->steps,
                         .scales = q->scales + column * NP * q->scale_stride, .scale_stride = q->scale_stride};
    const float *weights = (const float *)q->codes[all[m].codes];
    const int32_t pairs = row == 1 ? q->pairs - q->odd : q->pairs, tiles = (q->pairs + MR - 1) / MR, parts = m < 4 ? 4 : 3;
    const int64_t share = q->bytes / parts;
    const int32_t lines = (int32_t)(share / 64 + tiles - 1) / tiles;
    const char *next = q->next + (m < 4 ? 0 : NP * q->next_stride) + m % 4 * share;
    for (int32_t r = 0; r < q->pairs; r += MR) {
        for (int i = 0; i < lines; i++, next += 64)
            for (int j = 0; j < NP; j++) __builtin_prefetch(next + j * q->next_stride, 0, 2);
        int32_t height = q->pairs - r < MR ? q->pairs - r : MR, lost = row == 1 && r + height > pairs;
        if (m == 5) height -= lost; /* what is not there cannot be read */
        chain.lost = m != 5 && lost;
        const ahead_t ahead = {a + MR * lda, 0, MR * 4}; /* the next tile's rows, one behind the other */
        if (!wide && r == 0 && all[m].codes > 2 && q->weights) {
            chain.made = (float *)q->codes[all[m].codes];
            f32_tile(MR, NP, MAKE + all[m].codes, (const float *)a, lda / 4, q->weights, q->weight_stride, q->steps, c, 2 * q->ldc,
                     q->add, finish.bias, ahead, &chain);
        } else if (height == MR && wide)
            i16_tile(MR, NP, CHAIN, a, lda, &b, c, 2 * q->ldc, q->add, finish, (ahead_t){0}, &chain);
        else if (wide)
            i16_rows(height, NP, CHAIN, a, lda, &b, c, 2 * q->ldc, q->add, finish, (ahead_t){0}, &chain);
        else if (height == MR)
            f32_tile(MR, NP, CHAIN, (const float *)a, lda / 4, weights, apart / 4, q->steps, c, 2 * q->ldc, q->add, finish.bias,
                     ahead, &chain);
        else
            f32_rows(height, NP, CHAIN, (const float *)a, lda / 4, weights, apart / 4, q->steps, c, 2 * q->ldc, q->add,
                     finish.bias, ahead, &chain);
        a += MR * lda;
        if (c) c += 2 * MR * q->ldc;
        if (chain.from) chain.from = (const char *)chain.from + size;
        if (chain.to) chain.to = (char *)chain.to + size;
        if (chain.plus) chain.plus = (const char *)chain.plus + size;
        if (finish.row_scales) finish.row_scales += 2 * MR;
        if (chain.factors) chain.factors += MR;
    }
}

INK_INLINE void seven_products(const int wide, const quarters_t *q) {
    product(0, wide, q);
    product(1, wide, q);
    product(2, wide, q);
    product(3, wide, q);
    product(4, wide, q);
    product(5, wide, q);
    product(6, wide, q);
}

/* The first of all panels, which nobody asked for: while the rows are made ready. */
INK_INLINE void ask_for(const void *panels, int32_t bytes, int64_t stride) {
    for (int32_t j = 0; j < 2 * NP; j++)
        for (int32_t i = 0; i < bytes; i += 64) __builtin_prefetch((const char *)panels + j * stride + i, 0, 2);
}

/* The quarters of 2 * NP int8 panels and their sums, as int16: seven of (NP, half / 2, 32). */
static void code_sums(const i8_panels *b, int32_t half, int16_t *out) {
    const int64_t size = (int64_t)NP * half * INK_PANEL, below = (int64_t)half * INK_PANEL;
    for (int32_t j = 0; j < NP; j++)
        for (int32_t run = 0; run < b->groups; run++) { /* half a group at a time: the lower half may begin in one's middle */
            const int8_t *left = b->codes + j * b->code_stride + run * (INK_GROUP / 2) * INK_PANEL;
            const int8_t *right = left + NP * b->code_stride;
            const int16_t *upper = b->by + j * b->by_stride + run / 2 * 2 * INK_PANEL;
            const int16_t *lower = b->by + j * b->by_stride + (b->groups + run) / 2 * 2 * INK_PANEL;
            vi by[NV][4];
#pragma GCC unroll 4
            for (int v = 0; v < NV; v++) {
                by[v][0] = vi_load(upper + v * 2 * VW), by[v][1] = vi_load(lower + v * 2 * VW);
                by[v][2] = vi_load(upper + NP * b->by_stride + v * 2 * VW);
                by[v][3] = vi_load(lower + NP * b->by_stride + v * 2 * VW);
            }
            for (int32_t at = 0; at < INK_GROUP / 2 * INK_PANEL; at += 2 * INK_PANEL, out += 2 * INK_PANEL)
#pragma GCC unroll 4
                for (int v = 0; v < NV; v++) {
                    int64_t here = at + v * 2 * VW;
                    int16_t *to = out + v * 2 * VW;
                    vi b11 = vi_mul_round(vi_widen_high(left + here), by[v][0]);
                    vi b21 = vi_mul_round(vi_widen_high(left + below + here), by[v][1]);
                    vi b12 = vi_mul_round(vi_widen_high(right + here), by[v][2]);
                    vi b22 = vi_mul_round(vi_widen_high(right + below + here), by[v][3]);
                    vi t1 = vi_sub16(b12, b11), t2 = vi_sub16(b22, t1);
                    vi_store(to, b11);
                    vi_store(to + size, b21);
                    vi_store(to + 2 * size, b22);
                    vi_store(to + 3 * size, t1);
                    vi_store(to + 4 * size, t2);
                    vi_store(to + 5 * size, vi_sub16(b22, b12));
                    vi_store(to + 6 * size, vi_sub16(b21, t2));
                }
        }
}

/* As i8_block, of int16 rows, for as many pairs of NP panels as there are, and the activation. Returns the panels done. */
typedef struct {
    int16_t rows[4 * MOST_PAIRS * KC_I8 / 2];
} i16_room;
static int32_t paired_i16_block(int32_t rows, int32_t panels, const int16_t *a, const i8_weight *weight, const float *row_scales,
                                float *c, int64_t ldc, int32_t mode, i16_room *room) {
    const int32_t groups = weight->groups, k = groups * INK_GROUP, whole = panels / (2 * NP) * 2 * NP;
    const int64_t panel_stride = (int64_t)k * INK_PANEL;
    int16_t wide[7 * NP * KC_I8 / 2 * INK_PANEL] __attribute__((aligned(64)));
    int16_t by[2 * NP * (KC_I8 / INK_GROUP) * 2 * INK_PANEL] __attribute__((aligned(64)));
    int32_t u[3][MOST_PAIRS * NP * INK_PANEL] __attribute__((aligned(64)));
    for (int32_t k0 = 0, n; whole && k0 < k; k0 += n) {
        n = k - k0 < KC_I8 ? k - k0 : KC_I8;
        const int32_t half = n / 2, last = k0 + n == k;
        if (k0 == 0) ask_for(weight->codes, n * INK_PANEL, panel_stride);
        pair_codes(a + k0, k, rows, n, room->rows);
        for (int32_t p = 0; p < whole; p += 2 * NP) {
            i8_weight w = from_panel(weight, p);
            i8_panels b = {.codes = w.codes + (int64_t)k0 * INK_PANEL, .code_stride = panel_stride, .by = by,
                           .by_stride = n / INK_GROUP * 2 * INK_PANEL, .groups = n / INK_GROUP};
            for (int32_t j = 0; j < 2 * NP; j++)
                pair_multipliers(w.multipliers + (j * groups + k0 / INK_GROUP) * INK_PANEL, b.groups, by + j * b.by_stride);
            code_sums(&b, half, wide);
            quarters_t q = {
                .pairs = (rows + 1) / 2, .steps = half / 2, .odd = rows % 2,
                .scales = w.scales + k0 / KC_I8 * INK_PANEL, .scale_stride = (int64_t)((k + KC_I8 - 1) / KC_I8) * INK_PANEL,
                .u = {(char *)u[0], (char *)u[1], (char *)u[2]}, .c = c + (int64_t)p * INK_PANEL, .ldc = ldc, .add = k0 > 0,
                .next = (const char *)(p + 2 * NP < whole || last ? b.codes + 2 * NP * panel_stride
                                                                  : weight->codes + (int64_t)(k0 + n) * INK_PANEL),
                .bytes = (int64_t)n * INK_PANEL, .next_stride = panel_stride,
            };
            if (last) q.finish = (finish_t){.row_scales = row_scales, .bias = w.bias};
            for (int i = 0; i < 7; i++) {
                const int16_t *in_place = a + (i == 2 ? k : 0) + k0 + (i > 0 ? half : 0);
                q.rows[i] = (const char *)(i < 3 ? in_place : room->rows + (int64_t)(i - 3) * q.pairs * half);
                q.row_stride[i] = i < 3 ? 4 * k : n;
                q.codes[i] = (const char *)(wide + i * (int64_t)NP * half * INK_PANEL), q.panel_stride[i] = half * INK_PANEL * 2;
            }
            seven_products(1, &q);
            if (last) activate(q.c, ldc, rows, 2 * NP * INK_PANEL, mode);
        }
    }
    return whole;
}

/* T1, T2, T3, -T4 of 2 * NP float32 panels: each (NP, half, 16). */
static void weight_sums(const float *b, int64_t panel_stride, int32_t half, float *out) {
    const int64_t size = (int64_t)NP * half * INK_PANEL;
    for (int32_t j = 0; j < NP; j++)
        for (int64_t i = 0; i < (int64_t)half * INK_PANEL; i += VW, out += VW)
            for (int k = 0; k < 4; k++)
                vf_store(out + k * size, weight_sum(k + 3, b + j * panel_stride + i, half, NP * panel_stride, out + k * size, size));
}

/* What stands out of rows: each row of c += x * its row of the 2 * NP panels. */
static void add_apart(const apart_t *apart, int32_t count, const float *b, int64_t panel_stride, float *c, int64_t ldc) {
    for (; count > 0; count--, apart++)
        for (int32_t j = 0; j < 2 * NP; j++) {
            const float *w = b + j * panel_stride + (int64_t)apart->k * INK_PANEL;
            float *to = c + apart->row * ldc + j * INK_PANEL;
#pragma GCC unroll 4
            for (int32_t l = 0; l < INK_PANEL; l += VW)
                vf_store(to + l, vf_fma(vf_set1(apart->x), vf_load(w + l), vf_load(to + l)));
        }
}

/* The same for float32 rows, an even number of them. */
typedef struct {
    float rows[7 * (MOST_PAIRS * KC_F32 / 2 + 16)];
    apart_t apart[2 * MOST_PAIRS * MOST_APART];
    float factors[MOST_PAIRS];
} f32_room;
static int32_t paired_f32_block(int32_t rows, int32_t panels, const float *a, int64_t lda, const float *b, int32_t k,
                                const float *bias, float *c, int64_t ldc, int32_t mode, f32_room *room) {
    const int32_t whole = panels / (2 * NP) * 2 * NP, pairs = rows / 2;
    const int64_t panel_stride = (int64_t)k * INK_PANEL;
    float t[4 * NP * KC_F32 / 2 * INK_PANEL] __attribute__((aligned(64)));
    float u[3][MOST_PAIRS * NP * INK_PANEL] __attribute__((aligned(64)));
    for (int32_t k0 = 0, n; whole && k0 < k; k0 += n) {
        n = k - k0 < KC_F32 ? k - k0 : KC_F32;
        const int32_t half = n / 2, last = k0 + n == k;
        if (k0 == 0) ask_for(b, n * INK_PANEL * 4, panel_stride * 4);
        const int32_t stands_out = pair_rows(a + k0, lda, pairs, n, room->rows, room->apart, room->factors);
        for (int32_t p = 0; p < whole; p += 2 * NP) {
            const float *w = b + p * panel_stride + (int64_t)k0 * INK_PANEL;
            quarters_t q = {
                .pairs = pairs, .steps = half, .factors = room->factors, .u = {(char *)u[0], (char *)u[1], (char *)u[2]}, .c = c + (int64_t)p * INK_PANEL, .ldc = ldc,
                .add = k0 > 0,
                .next = (const char *)(p + 2 * NP < whole || last ? w + 2 * NP * panel_stride : b + (int64_t)(k0 + n) * INK_PANEL),
                .bytes = (int64_t)n * INK_PANEL * 4, .next_stride = panel_stride * 4,
            };
            if (pairs < MR)
                weight_sums(w, panel_stride, half, t);
            else
                q.weights = w, q.weight_stride = panel_stride;
            if (last && bias) q.finish.bias = bias + p * INK_PANEL;
            const float *quarters[3] = {w, w + half * INK_PANEL, w + NP * panel_stride + half * INK_PANEL};
            for (int i = 0; i < 7; i++) {
                q.rows[i] = (const char *)(room->rows + i * quarter_size(pairs, n)), q.row_stride[i] = 4 * half;
                q.codes[i] = (const char *)(i < 3 ? quarters[i] : t + (i - 3) * (int64_t)NP * half * INK_PANEL);
                q.panel_stride[i] = 4 * (i < 3 ? panel_stride : half * INK_PANEL);
            }
            seven_products(0, &q);
            add_apart(room->apart, stands_out, w, panel_stride, q.c, ldc);
            if (last) activate(q.c, ldc, rows, 2 * NP * INK_PANEL, mode);
        }
    }
    return whole;
}

#endif
