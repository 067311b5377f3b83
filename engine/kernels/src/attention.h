/* Attention of one head in one text, fused: the score matrix never exists.
 *
 * Queries lie in the lanes, a panel of 16 at a time, and keys pass by MR at a time: a tile of scores is computed
 * in registers, turned into weights there, and multiplied into the sums of values, without a horizontal step. The largest score
 * so far is kept for every query; when it grows, what has been summed shrinks accordingly (Milakov and Gimelshein 2018; Dao et
 * al. 2022). A query's numbers depend on its own lane and on the text's keys only, never on the lanes beside it. */
#ifndef INK_ATTENTION_H
#define INK_ATTENTION_H

#include "gemm.h"
#include "rows.h"

#define INK_LANES INK_PANEL        /* queries at once */
#define INK_KEYS (4 * MR)           /* keys whose scores are held at once */
#define INK_NEAR_KEYS 64            /* up to this many keys are read where they lie */
#define INK_LINE 64
#define INK_ROWS_AHEAD 12
#define INK_BIAS_MORE INK_LANES       /* entries behind every row of a bias: for the lanes of queries that are not there */
#define INK_HIDDEN -__builtin_inff()  /* the score of a key that a query may not see */
#define INK_SLACK 10.0f               /* how far a score may lie above what counts as the largest: weights up to 2^10 */
#define INK_NO_SCORE -3.402823466e38f /* the largest score before any: hidden keys weigh 2^-125 beside it */

/* One head: rows of d floats, ldq, ldk and ldv apart. bias[i - j] belongs to query i and key j, in units of log2; NULL is none. */
typedef struct {
    const float *q, *k, *v, *bias;
    int64_t ldq, ldk, ldv;
    int32_t d, len, seen, window, causal;
    float factor; /* of the scores, times log2 e */
} head_t;

/* The keys that query r may see: from the first on, before the end. */
INK_INLINE int32_t first_key(const head_t *h, int32_t r) { return h->window >= 0 && r > h->window ? r - h->window : 0; }
INK_INLINE int32_t end_key(const head_t *h, int32_t r) {
    int32_t end = h->causal && r + 1 < h->seen ? r + 1 : h->seen;
    return h->window >= 0 && r + h->window + 1 < end ? r + h->window + 1 : end;
}

/* out (rows, d) = rows of x, ld apart. No processor foresees so wide a stride: rows ahead are asked for. */
static void lay_rows(const float *x, int64_t ld, int32_t rows, int32_t d, float *out) {
    for (int32_t r = 0; r < rows; r++, x += ld, out += d) {
        int32_t i = 0;
        for (int32_t line = 0; line < d; line += INK_LINE / 4) __builtin_prefetch(x + INK_ROWS_AHEAD * ld + line);
        for (; i + VW <= d; i += VW) vf_store(out + i, vf_load(x + i));
        for (; i < d; i++) out[i] = x[i];
    }
}

/* out (d, lanes) = the transpose of count rows of x times factor, zeros behind. */
static void turn_queries(const float *x, int64_t ld, int32_t count, int32_t d, float factor, float *out) {
    for (int32_t j = 0; j < INK_LANES; j += 4) {
        int32_t i = 0;
        if (j + 4 <= count)
            for (; i + 4 <= d; i += 4) turn4(x + j * ld + i, ld, factor, out + (int64_t)i * INK_LANES + j, INK_LANES);
        for (; i < d; i++)
            for (int32_t l = j; l < j + 4; l++) out[(int64_t)i * INK_LANES + l] = l < count ? x[l * ld + i] * factor : 0.0f;
    }
}

/* tile (keys, lanes): entries that the query may not see become `value`. Query of lane 0: r; first key: j. */
static void hide(const head_t *h, float *tile, int32_t keys, int32_t r, int32_t j, float value) {
    for (int32_t lane = 0; lane < INK_LANES; lane++) {
        int32_t first = first_key(h, r + lane), end = end_key(h, r + lane);
        for (int32_t key = 0; key < keys; key++)
            if (j + key < first || j + key >= end) tile[key * INK_LANES + lane] = value;
    }
}

/* scores (keys, lanes) = less + products of mr keys from k on with queries (d, lanes). */
INK_INLINE void score_tile(const int mr, const head_t *h, const float *k, const float *queries, const float *less,
                           float *scores) {
    vf acc[MR][NV];
#pragma GCC unroll 16
    for (int key = 0; key < mr; key++)
#pragma GCC unroll 16
        for (int l = 0; l < NV; l++) acc[key][l] = vf_load(less + l * VW);
    walk_t rows = walk(mr, k, h->ldk * 4);
    INK_UNROLL(2)
    for (int32_t i = 0; i < h->d; i++) {
        vf q[NV];
#pragma GCC unroll 16
        for (int l = 0; l < NV; l++) q[l] = vf_load(queries + i * INK_LANES + l * VW);
#pragma GCC unroll 16
        for (int key = 0; key < mr; key++) {
            vf x = vf_set1(float_at(&rows, key));
#pragma GCC unroll 16
            for (int l = 0; l < NV; l++) acc[key][l] = vf_fma(x, q[l], acc[key][l]);
        }
        step_on(mr, &rows);
    }
#pragma GCC unroll 16
    for (int key = 0; key < mr; key++)
#pragma GCC unroll 16
        for (int l = 0; l < NV; l++) vf_store(scores + key * INK_LANES + l * VW, acc[key][l]);
}

/* sums (d, lanes) += values of mr keys from v on, weighted (keys, lanes). */
INK_INLINE void weigh_tile(const int mr, const head_t *h, const float *v, const float *weights, float *sums) {
    vf weight[MR][NV];
#pragma GCC unroll 16
    for (int key = 0; key < mr; key++)
#pragma GCC unroll 16
        for (int l = 0; l < NV; l++) weight[key][l] = vf_load(weights + key * INK_LANES + l * VW);
    walk_t rows = walk(mr, v, h->ldv * 4);
    INK_UNROLL(2)
    for (int32_t i = 0; i < h->d; i++) {
        vf sum[NV];
#pragma GCC unroll 16
        for (int l = 0; l < NV; l++) sum[l] = vf_load(sums + i * INK_LANES + l * VW);
#pragma GCC unroll 16
        for (int key = 0; key < mr; key++) {
            vf x = vf_set1(float_at(&rows, key));
#pragma GCC unroll 16
            for (int l = 0; l < NV; l++) sum[l] = vf_fma(x, weight[key][l], sum[l]);
        }
#pragma GCC unroll 16
        for (int l = 0; l < NV; l++) vf_store(sums + i * INK_LANES + l * VW, sum[l]);
        step_on(mr, &rows);
    }
}

static void score_keys(int mr, const head_t *h, const float *k, const float *queries, const float *less, float *scores) {
#define CASE(R)                                                                                                        \
    case R:                                                                                                            \
        if (R <= MR) score_tile(R <= MR ? R : 1, h, k, queries, less, scores);                                         \
        break;
    switch (mr) { INK_EACH_ROW_COUNT(CASE) }
#undef CASE
}

static void weigh_values(int mr, const head_t *h, const float *v, const float *weights, float *sums) {
#define CASE(R)                                                                                                        \
    case R:                                                                                                            \
        if (R <= MR) weigh_tile(R <= MR ? R : 1, h, v, weights, sums);                                                 \
        break;
    switch (mr) { INK_EACH_ROW_COUNT(CASE) }
#undef CASE
}

/* What is known of a block of queries after some of the keys, by lane. */
typedef struct {
    float less[INK_LANES];  /* minus what counts as the largest score so far */
    float limit[INK_LANES]; /* how large a score, less included, may get before that changes */
    float total[INK_LANES]; /* the sum of the weights */
} softmax_t;

/* Scores (keys, lanes) of which some have grown too large become smaller, and so does what has been summed. */
static void shrink(softmax_t *soft, float *scores, int32_t keys, float *sums, int32_t d) {
    for (int32_t l = 0; l < INK_LANES; l += VW) {
        vf top = vf_load(scores + l), limit = vf_load(soft->limit + l);
        for (int32_t key = 1; key < keys; key++) top = vf_max(top, vf_load(scores + key * INK_LANES + l));
        vf growth = vf_where_greater(top, limit, top, vf_set1(0.0f));
        /* Exactly 1 where nothing grows, which the polynomial of 2^0 is not. */
        vf factor = vf_exp2(vf_min(vf_sub(vf_set1(0.0f), growth), vf_set1(0.0f)));
        factor = vf_where_greater(top, limit, factor, vf_set1(1.0f));
        vf_store(soft->limit + l, vf_where_greater(top, limit, vf_set1(INK_SLACK), limit));
        vf_store(soft->less + l, vf_sub(vf_load(soft->less + l), growth));
        vf_store(soft->total + l, vf_mul(vf_load(soft->total + l), factor));
        for (int32_t key = 0; key < keys; key++)
            vf_store(scores + key * INK_LANES + l, vf_sub(vf_load(scores + key * INK_LANES + l), growth));
        for (int32_t i = 0; i < d; i++) vf_store(sums + i * INK_LANES + l, vf_mul(vf_load(sums + i * INK_LANES + l), factor));
    }
}

/* Scores (keys, lanes) become weights. */
static void soften(softmax_t *soft, float *scores, int32_t keys, float *sums, int32_t d) {
    vf sum[NV];
    int grown = 0;
#pragma GCC unroll 16
    for (int l = 0; l < NV; l++) sum[l] = vf_load(scores + l * VW);
    for (int32_t key = 1; key < keys; key++)
#pragma GCC unroll 16
        for (int l = 0; l < NV; l++) sum[l] = vf_max(sum[l], vf_load(scores + key * INK_LANES + l * VW));
#pragma GCC unroll 16
    for (int l = 0; l < NV; l++) grown |= vf_any_greater(sum[l], vf_load(soft->limit + l * VW));
    if (grown) shrink(soft, scores, keys, sums, d);
#pragma GCC unroll 16
    for (int l = 0; l < NV; l++) sum[l] = vf_load(soft->total + l * VW);
    for (int32_t key = 0; key < keys; key++)
#pragma GCC unroll 16
        for (int l = 0; l < NV; l++) {
            float *score = scores + key * INK_LANES + l * VW;
            vf weight = vf_exp2(vf_load(score));
            vf_store(score, weight);
            sum[l] = vf_add(sum[l], weight);
        }
#pragma GCC unroll 16
    for (int l = 0; l < NV; l++) vf_store(soft->total + l * VW, sum[l]);
}

/* scores (keys, lanes) += the bias of keys from j on for queries from r on. */
static void add_bias(const head_t *h, float *scores, int32_t keys, int32_t r, int32_t j) {
    for (int32_t key = 0; key < keys; key++)
        for (int32_t l = 0; l < INK_LANES; l += VW) {
            float *score = scores + key * INK_LANES + l;
            vf_store(score, vf_add(vf_load(score), vf_load(h->bias + r - j - key + l)));
        }
}

/* Queries r .. r + count of a head, count <= INK_LANES; row i of out, ldo apart, becomes that of query r + i.
 * scratch: 2 * d * INK_LANES floats. */
static void attend(const head_t *h, int32_t r, int32_t count, float *out, int64_t ldo, float *scratch) {
    int32_t last = r + count - 1;
    /* Keys fall into the same groups whatever queries stand beside one: what is done to a group depends on all of it. */
    int32_t low = first_key(h, r) / INK_KEYS * INK_KEYS, high = end_key(h, last), d = h->d;
    float *queries = scratch, *sums = scratch + (int64_t)d * INK_LANES, scores[INK_KEYS * INK_LANES] __attribute__((aligned(64)));
    softmax_t soft;
    for (int32_t l = 0; l < INK_LANES; l++) soft.less[l] = soft.total[l] = 0.0f, soft.limit[l] = INK_NO_SCORE;
    turn_queries(h->q + r * h->ldq, h->ldq, count, d, h->factor, queries);
    memset(sums, 0, (size_t)(d * INK_LANES) * sizeof(float));
    for (int32_t j = low, keys; j < high; j += keys) {
        keys = high - j < INK_KEYS ? high - j : INK_KEYS;
        int32_t tiles = (keys + MR - 1) / MR, hidden = j < first_key(h, last) || j + keys > end_key(h, r);
        for (int32_t t = 0, at = 0, height; t < tiles; t++, at += height) {
            height = tile_height(keys, t, tiles);
            score_keys(height, h, h->k + (j + at) * h->ldk, queries, soft.less, scores + at * INK_LANES);
        }
        if (h->bias) add_bias(h, scores, keys, r, j);
        if (hidden) hide(h, scores, keys, r, j, INK_HIDDEN);
        soften(&soft, scores, keys, sums, d);
        if (hidden) hide(h, scores, keys, r, j, 0.0f);
        for (int32_t t = 0, at = 0, height; t < tiles; t++, at += height) {
            height = tile_height(keys, t, tiles);
            weigh_values(height, h, h->v + (j + at) * h->ldv, scores + at * INK_LANES, sums);
        }
    }
    /* A query that saw no key attends to nothing. */
    for (int32_t l = 0; l < INK_LANES; l++) soft.total[l] = soft.limit[l] > INK_NO_SCORE ? 1.0f / soft.total[l] : 0.0f;
    for (int32_t i = 0; i < d; i++)
        for (int32_t l = 0; l < INK_LANES; l += VW) {
            float *sum = sums + i * INK_LANES + l;
            vf_store(sum, vf_mul(vf_load(sum), vf_load(soft.total + l)));
        }
    for (int32_t l = 0; l < count; l += 4) {
        int32_t i = 0;
        if (l + 4 <= count)
            for (; i + 4 <= d; i += 4) turn4(sums + (int64_t)i * INK_LANES + l, INK_LANES, 1.0f, out + l * ldo + i, ldo);
        for (; i < d; i++)
            for (int32_t a = l; a < count && a < l + 4; a++) out[a * ldo + i] = sums[(int64_t)i * INK_LANES + a];
    }
}

#endif
