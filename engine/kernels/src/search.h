/* Scans over stored vectors: compact int8 codes, and one-bit token vectors for late interaction. */
#ifndef INK_SEARCH_H
#define INK_SEARCH_H

#include "gemm.h"
#include "rows.h"

/* out[i] = scales[i] * (codes[i] . query), float32 products in one fixed order; dim any, codes (n, dim) contiguous. */
static void scan_int8(const int8_t *codes, const float *scales, const float *query, float *out, int64_t n, int32_t dim) {
    int32_t whole = dim - dim % (4 * VW);
    for (int64_t i = 0; i < n; i++) {
        const int8_t *x = codes + i * dim;
        vf sum[4] = {vf_set1(0.0f), vf_set1(0.0f), vf_set1(0.0f), vf_set1(0.0f)};
        for (int32_t j = 0; j < whole; j += 4 * VW)
            for (int u = 0; u < 4; u++) sum[u] = vf_fma(vf_from_i8(x + j + u * VW), vf_load(query + j + u * VW), sum[u]);
        float rest = 0.0f;
        for (int32_t j = whole; j < dim; j++) rest += (float)x[j] * query[j];
        out[i] = scales[i] * (vf_sum(vf_add(vf_add(sum[0], sum[1]), vf_add(sum[2], sum[3]))) + rest);
    }
}

/* Bit j of a row is set where x[j] >= 0, lowest bit first; dim a multiple of 8. */
static void pack_bits(const float *x, uint8_t *out, int64_t rows, int32_t dim) {
    for (int64_t i = 0; i < rows * dim / 8; i++) {
        uint8_t byte = 0;
        for (int j = 0; j < 8; j++) byte |= (uint8_t)((x[8 * i + j] >= 0.0f) << j);
        out[i] = byte;
    }
}

/* 16 tokens' bits into one int8 panel of +1 and -1: (padded / 2, 16, 2); tokens past count repeat the last one. */
static void expand_bits(const uint8_t *bits, int64_t count, int32_t dim, int8_t *panel) {
    int32_t bytes = dim / 8;
    for (int32_t b = 0; b < bytes; b++) {
        uint8_t column[INK_PANEL];
        for (int c = 0; c < INK_PANEL; c++) column[c] = bits[(c < count ? c : count - 1) * bytes + b];
        for (int pair = 0; pair < 4; pair++) {
            int8_t *out = panel + (int64_t)(4 * b + pair) * 2 * INK_PANEL;
            for (int c = 0; c < INK_PANEL; c++) {
                out[2 * c] = (int8_t)(((column[c] >> (2 * pair)) & 1) * 2 - 1);
                out[2 * c + 1] = (int8_t)(((column[c] >> (2 * pair + 1)) & 1) * 2 - 1);
            }
        }
    }
}

/* See reference.py maxsim_bits_argmax. Query rows become int16 with one scale a row; products with +-1 are exact.
 * scratch: int16 query (q, depth), q row scales, depth * 16 bytes of panel, q * 16 floats, depth / 64 * 16 ones and multipliers. */
static void maxsim(const float *query, int32_t q, int32_t dim, const uint8_t *bits, const int64_t *starts, int64_t count,
                   float *best, int32_t *where, void *scratch) {
    int32_t depth = (dim + INK_GROUP - 1) / INK_GROUP * INK_GROUP, groups = depth / INK_GROUP;
    float *row_scales = (float *)scratch, *scores = row_scales + q, *ones = scores + (int64_t)q * INK_PANEL;
    int16_t *multipliers = (int16_t *)(ones + (int64_t)groups * INK_PANEL), *codes = multipliers + (int64_t)groups * INK_PANEL;
    int8_t *panel = (int8_t *)(codes + (int64_t)q * depth);
    float scale = 1.0f / ink_sqrt((float)dim);
    for (int32_t i = 0; i < q; i++)
        row_scales[i] = quantize_row(query + (int64_t)i * dim, codes + (int64_t)i * depth, dim, depth) * scale;
    for (int32_t j = 0; j < groups * INK_PANEL; j++) ones[j] = 1.0f, multipliers[j] = INK_ONE;
    i8_weight weight = {panel, multipliers, ones, NULL, NULL, groups};
    memset(panel, 0, (size_t)depth * INK_PANEL);
    for (int64_t c = 0; c < count; c++) {
        int64_t tokens = starts[c + 1] - starts[c];
        for (int32_t i = 0; i < q; i++) {
            best[c * q + i] = tokens ? -3.0e38f : 0.0f;
            where[c * q + i] = -1;
        }
        for (int64_t t = 0; t < tokens; t += INK_PANEL) {
            int64_t width = tokens - t < INK_PANEL ? tokens - t : INK_PANEL;
            expand_bits(bits + (starts[c] + t) * (dim / 8), width, dim, panel);
            i8_block(q, 1, codes, 0, &weight, row_scales, scores, INK_PANEL);
            for (int32_t i = 0; i < q; i++)
                for (int64_t j = 0; j < width; j++)
                    if (scores[i * INK_PANEL + j] > best[c * q + i]) {
                        best[c * q + i] = scores[i * INK_PANEL + j];
                        where[c * q + i] = (int32_t)(t + j);
                    }
        }
    }
}

#endif
