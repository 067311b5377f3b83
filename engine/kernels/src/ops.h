/* The operations of a plan: how many independent tiles an operation falls into, and the work of one tile. Any worker may
 * take any tile; a tile writes only its own part of the output. */
#ifndef INK_OPS_H
#define INK_OPS_H

#include "attention.h"
#include "strassen.h"

#define ROWS_A_TILE 16   /* rows of one work item of a row-wise operation */
#define PANELS_A_TILE 4  /* panels of one work item of a linear layer */
#define WIDE_PANELS 24   /* of one where rows are multiplied in pairs */
#define INK_HEAD_MAX 512 /* widest head of a rotary attention; the loader refuses wider ones */

INK_INLINE int32_t round_up(int32_t n, int32_t to) { return (n + to - 1) / to * to; }
INK_INLINE int32_t blocks(int32_t n, int32_t size) { return (n + size - 1) / size; }
INK_INLINE int64_t stride_of(int32_t width) { return round_up(width, INK_PANEL); }
INK_INLINE float *buffer(const ink_run *run, int32_t index) { return index < 0 ? NULL : (float *)run->buffers[index]; }
INK_INLINE int32_t rows_of(const ink_op *op, const ink_run *run) { return op->texts ? run->texts : run->tokens; }

/* Rows of one work item: as few blocks as ROW_BLOCK allows, about equally high, of whole pairs. */
INK_INLINE int32_t row_block(int32_t rows) { return rows ? round_up(blocks(rows, blocks(rows, ROW_BLOCK)), 2) : 1; }

/* The rows of a linear layer that are multiplied in pairs, which come first. */
INK_INLINE int32_t paired_rows(const ink_op *op, const ink_run *run) {
    int32_t rows = rows_of(op, run);
    if (op->kind == INK_LINEAR) return op->pairs ? run->paired : 0;
    return op->kind == INK_LINEAR_I8 && rows >= PAIRED_ROWS ? rows : 0;
}

/* Panels of one work item. What rows are multiplied by in pairs is made again for every item, so that there are few, but as many
 * for each worker, and where a layer is wide some more: a worker may be slower than another. */
INK_INLINE int32_t panels_a_tile(const ink_op *op, const ink_run *run) {
    int32_t paired = paired_rows(op, run), panels = blocks(op->n, INK_PANEL), shares = run->workers;
    if (!paired) return PANELS_A_TILE;
    if (shares == 1) return panels;
    for (int32_t a = blocks(paired, row_block(paired)), b = run->workers, rest; b; a = b, b = rest) {
        rest = a % b;
        shares = run->workers / b; /* in the end b is the greatest common divisor */
    }
    shares *= blocks(panels, shares * WIDE_PANELS);
    return round_up(blocks(panels, shares), PANELS_A_TILE);
}

static int32_t op_tiles(const ink_op *op, const ink_run *run) {
    int32_t rows = rows_of(op, run), paired;
    switch (op->kind) {
    case INK_LINEAR:
    case INK_LINEAR_I8:
    case INK_LINEAR_U8:
        paired = paired_rows(op, run), rows -= paired;
        return (blocks(paired, row_block(paired)) + blocks(rows, row_block(rows))) *
               blocks(blocks(op->n, INK_PANEL), panels_a_tile(op, run));
    case INK_ATTENTION:
        return run->texts * op->heads;
    case INK_POOL:
        return run->texts;
    default:
        return blocks(rows, ROWS_A_TILE);
    }
}

/* Rows r .. r + height of a linear layer, and its panels p .. p + count, p in panels of the whole weight. */
static void f32_linear(const ink_op *op, const ink_run *run, int32_t r, int32_t height, int pairs, int32_t p, int32_t count,
                       void *scratch) {
    const int64_t lda = stride_of(op->k), ldc = stride_of(op->n), panel = (int64_t)op->k * INK_PANEL;
    const float *a = buffer(run, op->a) + r * lda, *w = (const float *)op->w0 + p * panel;
    const float *bias = op->w1 ? (const float *)op->w1 + (int64_t)p * INK_PANEL : NULL;
    float *c = buffer(run, op->out) + r * ldc + (int64_t)p * INK_PANEL;
    int32_t done = pairs ? paired_f32_block(height, count, a, lda, w, op->k, bias, c, ldc, op->mode, scratch) : 0;
    if (done == count) return;
    c += (int64_t)done * INK_PANEL, count -= done;
    f32_block(height, count, a, lda, w + done * panel, op->k, bias ? bias + done * INK_PANEL : NULL, c, ldc);
    activate(c, ldc, height, count * INK_PANEL, op->mode);
}

static void i8_linear(const ink_op *op, const ink_run *run, int32_t r, int32_t height, int pairs, int32_t p, int32_t count,
                      void *scratch) {
    const int32_t k = round_up(op->k, INK_GROUP), full = op->kind == INK_LINEAR_U8;
    const int64_t ldc = stride_of(op->n);
    const char *a = (const char *)run->buffers[op->a] + (int64_t)r * k * (full ? 1 : 2);
    const float *row_scales = buffer(run, op->b) + (full ? 2 * r : r);
    float *c = buffer(run, op->out) + r * ldc + (int64_t)p * INK_PANEL;
    i8_weight w = {op->w0, op->w4, op->w2, op->w3, op->w1, k / INK_GROUP};
    w = from_panel(&w, p);
    int32_t done = pairs ? paired_i16_block(height, count, (const int16_t *)a, &w, row_scales, c, ldc, op->mode, scratch) : 0;
    if (done == count) return;
    w = from_panel(&w, done), c += (int64_t)done * INK_PANEL, count -= done;
    i8_block(height, count, a, full, &w, row_scales, c, ldc);
    activate(c, ldc, height, count * INK_PANEL, op->mode);
}

static void linear_tile(const ink_op *op, const ink_run *run, int32_t index, void *scratch) {
    const int32_t paired = paired_rows(op, run), rows = rows_of(op, run);
    const int32_t paired_blocks = blocks(paired, row_block(paired)), all = paired_blocks + blocks(rows - paired, row_block(rows - paired));
    const int32_t block = index % all, share = panels_a_tile(op, run), p = index / all * share, pairs = block < paired_blocks;
    int32_t panels = blocks(op->n, INK_PANEL), count = panels - p < share ? panels - p : share;
    int32_t size = row_block(pairs ? paired : rows - paired), r = pairs ? block * size : paired + (block - paired_blocks) * size;
    int32_t end = pairs ? paired : rows, height = end - r < size ? end - r : size;
    if (op->kind == INK_LINEAR)
        f32_linear(op, run, r, height, pairs, p, count, scratch);
    else
        i8_linear(op, run, r, height, pairs, p, count, scratch);
}

/* out (+)= one table row; a table is float32 rows, or int8 rows with one scale each or one for every INK_GROUP. */
INK_INLINE void add_table_row(const void *table, const float *scales, int32_t groups, int32_t row, int32_t n, float *out,
                              int first) {
    int32_t whole = n - n % VW;
    if (!scales) {
        const float *x = (const float *)table + (int64_t)row * n;
        for (int32_t j = 0; j < whole; j += VW)
            vf_store(out + j, first ? vf_load(x + j) : vf_add(vf_load(out + j), vf_load(x + j)));
        for (int32_t j = whole; j < n; j++) out[j] = first ? x[j] : out[j] + x[j];
        return;
    }
    const int8_t *x = (const int8_t *)table + (int64_t)row * n;
    scales += (int64_t)row * groups;
    for (int32_t g = 0, start = 0; g < groups; g++, start += INK_GROUP) {
        int32_t stop = g + 1 < groups ? start + INK_GROUP : n, j = start;
        vf s = vf_set1(scales[g]);
        for (; j + VW <= stop; j += VW) {
            vf value = vf_mul(vf_from_i8(x + j), s);
            vf_store(out + j, first ? value : vf_add(vf_load(out + j), value));
        }
        for (; j < stop; j++) {
            float value = (float)x[j] * scales[g];
            out[j] = first ? value : out[j] + value;
        }
    }
}

static void embed_tile(const ink_op *op, const ink_run *run, int32_t start, int32_t stop) {
    int64_t ld = stride_of(op->n);
    for (int32_t t = start; t < stop; t++) {
        float *out = buffer(run, op->out) + t * ld;
        add_table_row(op->w0, (const float *)op->w3, op->k, run->ids[t], op->n, out, 1);
        if (op->w1) add_table_row(op->w1, (const float *)op->w4, op->k, run->positions[t], op->n, out, 0);
        if (op->w2) add_table_row(op->w2, (const float *)op->w5, op->k, run->types[t], op->n, out, 0);
        if (op->f0 != 1.0f)
            for (int32_t j = 0; j < op->n; j++) out[j] *= op->f0;
    }
}

/* A table whose rows tokens may share: w1 says which row is whose, w2 weighs each token; both may be NULL. */
static void lookup_tile(const ink_op *op, const ink_run *run, int32_t start, int32_t stop) {
    int64_t ld = stride_of(op->n);
    for (int32_t t = start; t < stop; t++) {
        float *out = buffer(run, op->out) + t * ld;
        int32_t id = run->ids[t];
        int32_t row = op->w1 ? ((const int32_t *)op->w1)[id] : id;
        add_table_row(op->w0, (const float *)op->w3, op->k, row, op->n, out, 1);
        if (op->w2)
            for (int32_t j = 0; j < op->n; j++) out[j] *= ((const float *)op->w2)[id];
    }
}

/* Query and key heads of one row, normalised where the model does so, then rotated; values as they are. */
static void rotary_row(const ink_op *op, const float *x, float *out, int32_t position) {
    int32_t d = op->head_dim, half = d / 2;
    const float *cosine = (const float *)op->w0 + (int64_t)position * half;
    const float *sine = (const float *)op->w1 + (int64_t)position * half;
    for (int32_t h = 0; h < op->heads + op->kv_heads; h++) {
        const float *from = x + (int64_t)h * d, *weight = (const float *)(h < op->heads ? op->w2 : op->w3);
        float *to = out + (int64_t)h * d, normal[INK_HEAD_MAX];
        if (weight) {
            rms_row(from, normal, weight, d, op->f0);
            from = normal;
        }
        rotate_row(from, to, cosine, sine, d);
    }
    int64_t values = (int64_t)(op->heads + op->kv_heads) * d;
    memcpy(out + values, x + values, (size_t)op->kv_heads * (size_t)d * sizeof(float));
}

/* A finished row as the codes that the next linear layer reads. */
INK_INLINE void round_row(const ink_op *op, const ink_run *run, int32_t r, const float *x, int32_t width) {
    int32_t depth = round_up(width, INK_GROUP);
    char *codes = (char *)run->buffers[op->codes] + (int64_t)r * depth * (op->code_bits / 8);
#ifdef INK_DOT4
    if (op->code_bits == 8) {
        quantize_row8(x, (int8_t *)codes, width, depth, buffer(run, op->scales) + 2 * r);
        return;
    }
#endif
    buffer(run, op->scales)[r] = quantize_row(x, (int16_t *)codes, width, depth);
}

static void rows_tile(const ink_op *op, const ink_run *run, int32_t start, int32_t stop) {
    int64_t ld = stride_of(op->k);
    const float *a = buffer(run, op->a), *b = buffer(run, op->b);
    int32_t width = op->kind == INK_GATE ? op->n : op->k;
    for (int32_t r = start; r < stop; r++) {
        const float *x = a + r * ld, *y = b ? b + r * ld : NULL;
        float *out = op->kind == INK_QUANTIZE ? (float *)x : buffer(run, op->out) + r * stride_of(width);
        switch (op->kind) {
        case INK_QUANTIZE:
            break;
        case INK_LAYERNORM:
            layer_norm_row(x, y, out, (const float *)op->w0, (const float *)op->w1, op->k, op->f0);
            break;
        case INK_RMSNORM:
            if (y && !op->mode) add_row(x, y, out, op->k);
            rms_row(y && !op->mode ? out : x, out, (const float *)op->w0, op->k, op->f0);
            if (y && op->mode) add_row(out, y, out, op->k);
            break;
        case INK_GATE:
            gate_row(x, x + op->n, out, op->n, op->mode);
            break;
        case INK_ADD:
            add_row(x, y, out, op->k);
            break;
        case INK_ROTARY:
            rotary_row(op, x, out, run->positions[r]);
            break;
        default:
            unit_row(x, out, op->k);
        }
        if (op->codes >= 0) round_row(op, run, r, out, width);
    }
}

/* One row a text, sums in token order: see the enumeration in ink.h. A text without rows pools to zeros. */
static void pool_tile(const ink_op *op, const ink_run *run, int32_t text) {
    int64_t ld = stride_of(op->k), skip = op->limit ? run->prompt : 0, start = run->starts[text] + skip;
    int64_t count = run->ends[text] - start;
    const float *x = buffer(run, op->a) + start * ld;
    float *out = buffer(run, op->out) + text * ld;
    memset(out, 0, (size_t)op->k * sizeof(float));
    if (count <= 0) return;
    if (op->mode == INK_LAST) x += (count - 1) * ld;
    int single = op->mode == INK_FIRST || op->mode == INK_LAST;
    if (single || op->mode == INK_MAX) memcpy(out, x, (size_t)op->k * sizeof(float));
    if (single) return;
    float divisor = op->mode == INK_MEAN_SQRT ? ink_sqrt((float)count) : (float)count;
    if (op->mode == INK_WEIGHTED) divisor = (float)((count + skip) * (count + skip + 1) / 2 - skip * (skip + 1) / 2);
    for (int64_t t = 0; t < count; t++) {
        const float *row = x + t * ld;
        vf weight = vf_set1(op->mode == INK_WEIGHTED ? (float)(t + skip + 1) : 1.0f);
        for (int32_t j = 0; j < op->k; j += VW) {
            int rest = op->k - j < VW ? op->k - j : 0;
            vf old = rest ? vf_load_n(out + j, rest) : vf_load(out + j);
            vf new = rest ? vf_load_n(row + j, rest) : vf_load(row + j);
            vf next = op->mode == INK_MAX ? vf_max(old, new) : vf_fma(new, weight, old);
            if (rest)
                vf_store_n(out + j, next, rest);
            else
                vf_store(out + j, next);
        }
    }
    if (op->mode != INK_MAX)
        for (int32_t j = 0; j < op->k; j++) out[j] /= divisor;
}

/* The queries of a text of len rows: the first, and one past the last. */
INK_INLINE int32_t first_query(const ink_op *op, const ink_run *run, int32_t len) {
    if (op->query_row == INK_AFTER_PROMPT) return run->prompt;
    return op->query_row == INK_LAST_ROW && len > 0 ? len - 1 : 0;
}
INK_INLINE int32_t end_query(const ink_op *op, int32_t first, int32_t len) {
    return op->query_row != INK_EVERY_ROW && first + 1 < len ? first + 1 : len;
}

/* One head of one text; keys and values are laid side by side first where many queries read them: rows of a wide matrix lie so
 * far apart that they drive each other out of the cache. scratch: see _scratch_bytes of native.py. */
static void attention_tile(const ink_op *op, const ink_run *run, int32_t index, float *scratch) {
    int32_t text = index / op->heads, head = index % op->heads, d = op->head_dim, kv = head / (op->heads / op->kv_heads);
    int64_t start = run->starts[text], ld = stride_of(op->k), ldo = stride_of(op->n);
    const float *row = buffer(run, op->a) + start * ld;
    head_t h = {
        .q = row + (int64_t)head * d,
        .k = row + (int64_t)(op->heads + kv) * d,
        .v = row + (int64_t)(op->heads + op->kv_heads + kv) * d,
        .ldq = ld, .ldk = ld, .ldv = ld, .d = d, .len = (int32_t)(run->ends[text] - start),
        .window = op->window, .causal = op->mode, .factor = op->f0 * 1.44269504088896341f,
    };
    h.seen = run->visible ? run->visible[text] : h.len;
    if (op->w0) h.bias = (const float *)op->w0 + (int64_t)head * (2 * op->limit - 1 + INK_BIAS_MORE) + op->limit - 1;
    int32_t first = first_query(op, run, h.len), end = end_query(op, first, h.len);
    if (h.len > INK_NEAR_KEYS && end - first > 1) {
        float *keys = scratch, *values = keys + (int64_t)h.len * d;
        lay_rows(h.k, ld, h.len, d, keys);
        lay_rows(h.v, ld, h.len, d, values);
        h.k = keys, h.v = values, h.ldk = h.ldv = d, scratch = values + (int64_t)h.len * d;
    }
    /* The row that makes an odd number of rows even is nobody's, but another is multiplied with it. */
    if (op->query_row == INK_EVERY_ROW && start < run->paired && h.len % 2)
        memset(buffer(run, op->out) + (start + h.len) * ldo + (int64_t)head * d, 0, (size_t)d * sizeof(float));
    int64_t to = op->query_row == INK_EVERY_ROW ? start : text - first; /* where row 0 of the text would go in out */
    for (int32_t r = first; r < end; r += INK_LANES) {
        int32_t count = end - r < INK_LANES ? end - r : INK_LANES;
        attend(&h, r, count, buffer(run, op->out) + (to + r) * ldo + (int64_t)head * d, ldo, scratch);
    }
}

static void op_tile(const ink_op *op, const ink_run *run, int32_t index, void *scratch) {
    int32_t rows = rows_of(op, run), start = index * ROWS_A_TILE;
    int32_t stop = rows - start < ROWS_A_TILE ? rows : start + ROWS_A_TILE;
    switch (op->kind) {
    case INK_LINEAR:
    case INK_LINEAR_I8:
    case INK_LINEAR_U8:
        linear_tile(op, run, index, scratch);
        break;
    case INK_ATTENTION:
        attention_tile(op, run, index, (float *)scratch);
        break;
    case INK_POOL:
        pool_tile(op, run, index);
        break;
    case INK_EMBED:
        embed_tile(op, run, start, stop);
        break;
    case INK_LOOKUP:
        lookup_tile(op, run, start, stop);
        break;
    default:
        rows_tile(op, run, start, stop);
    }
}

#endif
