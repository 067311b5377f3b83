/* The one interface between Python (ctypes) and the kernels, and between dispatch and each instruction set's body.
 *
 * Every matrix is row-major float32 unless a field says otherwise. A batch is ragged: all texts' tokens back to back in
 * (tokens, width) matrices, text t owning rows starts[t] .. ends[t]. No kernel lets a text depend on its neighbours or on
 * the number of workers: sums run over the inner dimension in one fixed order, whatever tile a row falls in, and where rows
 * are multiplied in pairs (strassen.h), both are of one text, or integers that nothing rounds. */
#ifndef INK_H
#define INK_H

#include <stddef.h>
#include <stdint.h>

#define INK_PANEL 16 /* output channels side by side in a packed weight */
#define INK_GROUP 64 /* inputs that share an int8 scale */
#define INK_FAINTEST 1e-30f /* a row of no larger numbers is zeros, as FAINTEST there */
#define INK_PAIR_INPUTS 32 /* float32 rows of a multiple of these are multiplied in pairs */
#define INK_PAIR_BYTES (512 * 1024) /* of scratch, enough for them */
#define INK_ONE 128  /* the multiplier that leaves codes as they are */
#define INK_ROW_LIMIT 8191 /* the largest code of a row of int16: four add up within int16; as ACTIVATION_LIMIT of engine/weights/int8.py */

enum ink_op_kind {
    INK_EMBED,     /* out = (table0[ids] + table1[positions] + table2[types]) * f0 */
    INK_LAYERNORM, /* out = norm(a + b) * w0 + w1 */
    INK_QUANTIZE,  /* codes and scales = a */
    INK_LINEAR,    /* out = act(a * w0 panels + w1) */
    INK_LINEAR_I8, /* out = act(a (int16) * w0 (int8 panels) with w4 multipliers, w2 scales, b row scales, + w1) */
    INK_ATTENTION, /* out = softmax(q k^T * f0 + bias) v per text and head; a = q, k, v side by side; w0 bias */
    INK_POOL,      /* out (texts) = one row out of the token rows of a, by mode */
    INK_UNIT,      /* out = a / |a| */
    INK_RMSNORM,   /* out = rms(a + b) * w0, or with mode 1 rms(a) * w0 + b */
    INK_ROTARY,    /* out = a with q and k heads rotated by position (w0 cos, w1 sin), after rms with w2 (q) and w3 (k) */
    INK_GATE,      /* out = act(first half of a) * second half */
    INK_ADD,       /* out = a + b */
    INK_LOOKUP,    /* out = table0[w1[ids], or ids] * w2[ids] */
    INK_LINEAR_U8, /* as INK_LINEAR_I8 with 8-bit codes; b: scale and shift a row, w2 group scales, w3: the sum of each output's weights */
};

enum ink_activation { INK_NONE, INK_GELU, INK_GELU_TANH, INK_RELU, INK_SILU, INK_TANH };
enum ink_pooling { INK_MEAN, INK_FIRST, INK_LAST, INK_MAX, INK_MEAN_SQRT, INK_WEIGHTED };
/* Which rows of a text are queries. Where it is one, out has a row a text, and that of a text without it is not written. */
enum ink_query_row { INK_EVERY_ROW, INK_FIRST_ROW, INK_AFTER_PROMPT, INK_LAST_ROW };

/* Fields by op: k inputs, n outputs (widths in elements). Buffers are indices into ink_run.buffers; -1 is none. */
typedef struct {
    int32_t kind;
    int32_t a, b, out;
    int32_t codes, scales; /* codes, padded to whole groups, and a scale (8 bits: and a shift) a row: of a, or of what is made */
    int32_t code_bits;     /* 16 or 8 */
    int32_t k, n; /* of int8 tables, k is the number of scales a row */
    int32_t mode; /* activation, pooling, or 1 for a causal attention or a norm before the sum */
    int32_t heads, kv_heads, head_dim;
    int32_t window; /* attention: keys at most this far from the query; -1: all */
    int32_t texts;  /* 1: rows are the batch's texts, 0: its tokens */
    /* attention with bias: longest text that the bias covers; w0 is (heads, 2 limit - 1 and some more), by query - key + limit - 1,
     * in units of log2. pool: 1 leaves the prompt's rows out */
    int32_t limit;
    int32_t query_row; /* attention: an ink_query_row */
    int32_t pairs;     /* float32 linear: 1 multiplies the first rows in pairs, see ink_run.paired */
    float f0;       /* epsilon, or a factor */
    const void *w0, *w1, *w2, *w3, *w4, *w5;
} ink_op;

/* One call: a plan over one batch. next and done hold one counter an op, zeroed by the caller. */
typedef struct {
    const ink_op *ops;
    int32_t op_count;
    int32_t tokens, texts;
    int32_t longest; /* tokens of the longest text */
    int32_t prompt;  /* tokens at the start of every text that are its prompt */
    int32_t workers;
    int32_t paired;  /* so many rows at the start are whole pairs of rows of one text each */
    const int32_t *ids, *positions, *types;
    const int64_t *starts, *ends; /* rows of each text: pairs may leave a row between them that is nobody's */
    const int32_t *visible; /* keys that each text's queries may see, or NULL for all */
    void *const *buffers;
    int32_t *next, *done; /* atomics */
    void *scratch;        /* scratch_bytes for each worker */
    int64_t scratch_bytes;
} ink_run;

/* The functions of one instruction set. */
typedef struct {
    const char *name;
    int32_t (*tiles)(const ink_op *, const ink_run *);
    void (*tile)(const ink_op *, const ink_run *, int32_t index, void *scratch);
    void (*scan_int8)(const int8_t *codes, const float *scales, const float *query, float *out, int64_t n, int32_t dim);
    void (*maxsim)(const float *query, int32_t q, int32_t dim, const uint8_t *bits, const int64_t *starts, int64_t count,
                   float *best, int32_t *where, void *scratch);
    void (*pack_bits)(const float *x, uint8_t *out, int64_t rows, int32_t dim);
    void (*gemm)(const float *a, const float *panels, float *out, int32_t m, int32_t k, int32_t n, void *scratch);
    void (*gemm_i8)(const int16_t *a, const float *row_scales, const int8_t *panels, const int16_t *multipliers,
                    const float *scales, float *out, int32_t m, int32_t k, int32_t n, void *scratch);
    /* NULL where the processor has no products of four 8-bit numbers */
    void (*gemm_u8)(const float *a, const int8_t *panels, const float *scales, const float *column_sums, float *out,
                    int32_t m, int32_t k, int32_t n, void *scratch);
    void (*act)(float *x, int64_t n, int32_t mode);
} ink_isa;

#if defined(__GNUC__)
#define INK_INLINE static inline __attribute__((always_inline))
#else
#define INK_INLINE static inline
#endif

#endif
