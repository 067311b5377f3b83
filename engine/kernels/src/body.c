/* Every kernel, compiled once for each instruction set (-DINK_ISA_...): see simd.h for what differs. */
#include "ops.h"
#include "search.h"

#define PASTE2(a, b) a##b
#define PASTE(a, b) PASTE2(a, b)
#define TEXT2(a) #a
#define TEXT(a) TEXT2(a)

/* Products for the tests: out (m, n padded to 16) = a (m, k) * panels. scratch: INK_PAIR_BYTES for
 * products of pairs of rows, NULL for plain ones. */
static void gemm(const float *a, const float *panels, float *out, int32_t m, int32_t k, int32_t n, void *scratch) {
    const int32_t count = blocks(n, INK_PANEL), pairs = scratch && k % INK_PAIR_INPUTS == 0 ? m / 2 : 0;
    const int64_t ldc = (int64_t)count * INK_PANEL;
    for (int32_t r = 0, rows; r < m; r += rows) {
        int32_t end = r < 2 * pairs ? 2 * pairs : m, done = 0;
        const float *x = a + (int64_t)r * k;
        float *c = out + r * ldc;
        rows = end - r < ROW_BLOCK ? end - r : ROW_BLOCK;
        if (r < 2 * pairs) done = paired_f32_block(rows, count, x, k, panels, k, NULL, c, ldc, INK_NONE, scratch);
        f32_block(rows, count - done, x, k, panels + (int64_t)done * k * INK_PANEL, k, NULL, c + done * INK_PANEL, ldc);
    }
}

_Static_assert(sizeof(f32_room) <= INK_PAIR_BYTES && sizeof(i16_room) <= INK_PAIR_BYTES, "room for pairs");

static void gemm_i8(const int16_t *a, const float *row_scales, const int8_t *panels, const int16_t *multipliers,
                    const float *scales, float *out, int32_t m, int32_t k, int32_t n, void *scratch) {
    const int32_t count = blocks(n, INK_PANEL);
    const int64_t ldc = (int64_t)count * INK_PANEL;
    i8_weight w = {panels, multipliers, scales, NULL, NULL, k / INK_GROUP};
    for (int32_t r = 0; r < m; r += ROW_BLOCK) {
        int32_t rows = m - r < ROW_BLOCK ? m - r : ROW_BLOCK;
        const int16_t *x = a + (int64_t)r * k;
        float *c = out + r * ldc;
        int32_t done = scratch ? paired_i16_block(rows, count, x, &w, row_scales + r, c, ldc, INK_NONE, scratch) : 0;
        i8_weight rest = from_panel(&w, done);
        i8_block(rows, count - done, x, 0, &rest, row_scales + r, c + done * INK_PANEL, ldc);
    }
}

#ifdef INK_DOT4
/* The same with the rows rounded to 8 bits first; scratch: m * (k + 8) bytes. */
static void gemm_u8(const float *a, const int8_t *panels, const float *scales, const float *column_sums, float *out,
                    int32_t m, int32_t k, int32_t n, void *scratch) {
    int32_t count = blocks(n, INK_PANEL);
    float *rows = scratch;
    int8_t *codes = (int8_t *)(rows + 2 * m);
    for (int32_t r = 0; r < m; r++) quantize_row8(a + (int64_t)r * k, codes + (int64_t)r * k, k, k, rows + 2 * r);
    i8_weight w = {panels, NULL, scales, column_sums, NULL, k / INK_GROUP};
    i8_block(m, count, codes, 1, &w, rows, out, (int64_t)count * INK_PANEL);
}
#else
#define gemm_u8 NULL
#endif

/* x (n) = act(x), n a multiple of 16. */
static void act(float *x, int64_t n, int32_t mode) { activate(x, n, 1, (int32_t)n, mode); }

const ink_isa PASTE(ink_isa_, INK_NAME) = {
    TEXT(INK_NAME), op_tiles, op_tile, scan_int8, maxsim, pack_bits, gemm, gemm_i8, gemm_u8, act,
};
