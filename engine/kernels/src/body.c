/* Every kernel, compiled once for each instruction set (-DINK_ISA_...): see simd.h for what differs. */
#include "ops.h"
#include "search.h"

#define PASTE2(a, b) a##b
#define PASTE(a, b) PASTE2(a, b)
#define TEXT2(a) #a
#define TEXT(a) TEXT2(a)

/* Plain products for the tests: out (m, n padded to 16) = a (m, k) * panels. */
static void gemm(const float *a, const float *panels, float *out, int32_t m, int32_t k, int32_t n) {
    int32_t count = blocks(n, INK_PANEL);
    f32_block(m, count, a, k, panels, k, NULL, out, (int64_t)count * INK_PANEL);
}

static void gemm_i8(const int16_t *a, const float *row_scales, const int8_t *panels, const int16_t *multipliers,
                    const float *scales, float *out, int32_t m, int32_t k, int32_t n) {
    int32_t count = blocks(n, INK_PANEL);
    i8_weight w = {panels, multipliers, scales, NULL, NULL, k / INK_GROUP};
    i8_block(m, count, a, 0, &w, row_scales, out, (int64_t)count * INK_PANEL);
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
