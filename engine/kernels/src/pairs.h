/* Sums of pairs of rows for products by Winograd's form of Strassen's scheme (see strassen.h): rows 2 i and 2 i + 1, each in
 * two halves a block of the inner dimension, are the quarters A11, A12 and A21, A22, and
 * S1 = A21 + A22, S2 = S1 - A11, S3 = A11 - A21, S4 = A12 - S2. */
#ifndef INK_PAIRS_H
#define INK_PAIRS_H

#include "simd.h"

/* Blocks of the inner dimension; also such that a panel stays in a 32 KiB first-level cache while the rows pass. */
#define KC_F32 384
#define KC_I8 384 /* as DEPTH of engine/weights/int8.py: what int32 can sum */

/* int16: rows of n inputs; out: S1, S2, S3, S4, each (pairs, n / 2). Codes are at most INK_ROW_LIMIT, so that four add up within
 * int16. Beside the last row of an odd number stand zeros. */
static void pair_codes(const int16_t *a, int64_t lda, int32_t rows, int32_t n, int16_t *out) {
    const int64_t half = n / 2, size = (rows + 1) / 2 * half;
    for (int32_t r = 0; r < rows; r += 2, a += 2 * lda) {
        const int missing = r + 1 == rows;
        for (int64_t i = 0; i < half; i += 2 * VW, out += 2 * VW) {
            vi a11 = vi_load(a + i), a12 = vi_load(a + half + i);
            vi a21 = missing ? vi_set1(0) : vi_load(a + lda + i), a22 = missing ? vi_set1(0) : vi_load(a + lda + half + i);
            vi s1 = vi_add16(a21, a22), s2 = vi_sub16(s1, a11);
            vi_store(out, s1);
            vi_store(out + size, s2);
            vi_store(out + 2 * size, vi_sub16(a11, a21));
            vi_store(out + 3 * size, vi_sub16(a12, s2));
        }
    }
}

/* float32: a number that stands out of its row would leave its rounding errors in all that it is added to. What is larger than
 * STANDS_OUT times the root of the mean square of its block is taken out of the row and multiplied by itself: fewer than
 * KC_F32 / STANDS_OUT^2 = 6 a block. (None can be in a block of 64 inputs or fewer: the plan pairs no such rows.) */
#define STANDS_OUT 8.0f
#define MOST_APART 5
typedef struct {
    int32_t row, k; /* in the block of rows and of inputs */
    float x;
} apart_t;

/* The sum of the squares of x (n), and the largest of them in every lane. */
INK_INLINE float squares_of(const float *x, int32_t n, vf *largest) {
    enum { PARTS = INK_PAIR_INPUTS / VW < 4 ? INK_PAIR_INPUTS / VW : 4 };
    vf sum[PARTS], most[PARTS];
    for (int j = 0; j < PARTS; j++) sum[j] = most[j] = vf_set1(0.0f);
    for (int32_t i = 0; i < n; i += PARTS * VW)
        for (int j = 0; j < PARTS; j++) {
            vf v = vf_load(x + i + j * VW), square = vf_mul(v, v);
            sum[j] = vf_add(sum[j], square), most[j] = vf_max(most[j], square);
        }
    for (int j = 1; j < PARTS; j++) sum[0] = vf_add(sum[0], sum[j]), most[0] = vf_max(most[0], most[j]);
    *largest = most[0];
    return vf_sum(sum[0]);
}

/* x (n), row number `row`, without what stands out, which is added to the `count` of apart: x itself, or where there is any, a
 * copy in room. squares: the sum of those of the rest. */
INK_INLINE const float *set_apart(const float *x, int32_t n, int32_t row, float *room, apart_t *apart, int32_t *count,
                                  float *squares) {
    vf largest;
    *squares = squares_of(x, n, &largest);
    const float limit = STANDS_OUT * STANDS_OUT * *squares / (float)n;
    if (!vf_any_greater(largest, vf_set1(limit))) return x;
    const int32_t most = *count + MOST_APART;
    memcpy(room, x, (size_t)n * sizeof(float));
    for (int32_t i = 0; i < n; i += VW) {
        vf v = vf_load(x + i);
        if (!vf_any_greater(vf_mul(v, v), vf_set1(limit))) continue;
        for (int32_t k = i; k < i + VW && *count < most; k++)
            if (x[k] * x[k] > limit) {
                apart[(*count)++] = (apart_t){row, k, x[k]};
                room[k] = 0.0f;
            }
    }
    *squares = squares_of(room, n, &largest);
    return room;
}

/* The power of two that makes the second row of a pair about as large as the first: rounding errors go by the larger of the two.
 * Where they are within a factor of two, or one is nothing or no number, it is 1. */
INK_INLINE float alike(float first, float second) {
    int32_t a, b;
    memcpy(&a, &first, 4);
    memcpy(&b, &second, 4);
    a >>= 23, b >>= 23; /* of sums of squares, which have no sign */
    int32_t shift = (a - b) / 2;
    if (a == 0 || b == 0 || a == 255 || b == 255 || (shift > -2 && shift < 2)) return 1.0f;
    shift = (shift + 127) << 23;
    float power;
    memcpy(&power, &shift, 4);
    return power;
}

/* Rows of one block of up to KC_F32 inputs, in pairs: out has A11, A12, A22, S1, S2, S3 and S4, each (pairs, n / 2), apart what
 * stands out, at most MOST_APART a row, and factors what makes the second row's results, one a pair. Returns how many stand out. n: a multiple of INK_PAIR_INPUTS. */
INK_INLINE int64_t quarter_size(int32_t pairs, int32_t n) { /* and a line, lest all lie at the same distance from a page's start */
    return (int64_t)pairs * (n / 2) + 16;
}
static int32_t pair_rows(const float *a, int64_t lda, int32_t pairs, int32_t n, float *out, apart_t *apart, float *factors) {
    const int64_t size = quarter_size(pairs, n), half = n / 2;
    int32_t count = 0;
    for (int32_t pair = 0; pair < pairs; pair++, a += 2 * lda) {
        float room[2][KC_F32] __attribute__((aligned(64))), squares[2];
        const float *first = set_apart(a, n, 2 * pair, room[0], apart, &count, &squares[0]);
        const float *second = set_apart(a + lda, n, 2 * pair + 1, room[1], apart, &count, &squares[1]);
        const float power = alike(squares[0], squares[1]);
        factors[pair] = 1.0f / power;
        for (int64_t i = 0; i < half; i += VW, out += VW) {
            vf a11 = vf_load(first + i), a21 = vf_mul(vf_load(second + i), vf_set1(power));
            vf a12 = vf_load(first + half + i), a22 = vf_mul(vf_load(second + half + i), vf_set1(power));
            vf s1 = vf_add(a21, a22), s2 = vf_sub(s1, a11);
            vf_store(out, a11);
            vf_store(out + size, a12);
            vf_store(out + 2 * size, a22);
            vf_store(out + 3 * size, s1);
            vf_store(out + 4 * size, s2);
            vf_store(out + 5 * size, vf_sub(a11, a21));
            vf_store(out + 6 * size, vf_sub(a12, s2));
        }
    }
    return count;
}

#endif
