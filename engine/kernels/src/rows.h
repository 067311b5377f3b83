/* Work on single rows: exponentials, activations, normalisation, rounding to int16. Nothing here calls libm, whose
 * results differ from system to system. */
#ifndef INK_ROWS_H
#define INK_ROWS_H

#include "simd.h"

/* e^x by x = n ln 2 + r, |r| <= ln 2 / 2, a degree-7 polynomial for e^r (Taylor; the remainder, 5e-9, is far below
 * float32's rounding) and n put into the exponent. Relative error below 3e-7 on -87.3 .. 88; below that it stays at e^-87.3,
 * which a softmax cannot tell from 0. */
INK_INLINE vf vf_exp(vf x) {
    x = vf_max(vf_set1(-87.3f), x);
    x = vf_min(vf_set1(88.0f), x);
    vi n = vi_from_vf(vf_mul(x, vf_set1(1.44269504088896341f)));
    vf whole = vf_from_vi(n);
    vf r = vf_fma(whole, vf_set1(-0.693359375f), x);
    r = vf_fma(whole, vf_set1(2.12194440054690583e-4f), r);
    vf p = vf_set1(1.0f / 5040.0f);
    p = vf_fma(p, r, vf_set1(1.0f / 720.0f));
    p = vf_fma(p, r, vf_set1(1.0f / 120.0f));
    p = vf_fma(p, r, vf_set1(1.0f / 24.0f));
    p = vf_fma(p, r, vf_set1(1.0f / 6.0f));
    p = vf_fma(p, r, vf_set1(0.5f));
    p = vf_fma(p, r, vf_set1(1.0f));
    p = vf_fma(p, r, vf_set1(1.0f));
    return vf_scale2(p, n);
}

/* 2^t for t <= 0; below -125 it stays at 2^-125. t = n + f, |f| <= 1/2, and the polynomial of degree 5 for 2^f whose largest
 * relative error on that range is least: 7.5e-8. Half the work of vf_exp, for exponents that are a product anyway: the
 * rounding of t costs 4e-8 |t|, relative, of a value that is small where |t| is large. */
INK_INLINE vf vf_exp2(vf t) {
    t = vf_max(vf_set1(-125.0f), t);
    vi n = vi_from_vf(t);
    vf f = vf_sub(t, vf_from_vi(n));
    vf p = vf_set1(0.0013276472454890609f);
    p = vf_fma(p, f, vf_set1(0.009675540961325169f));
    p = vf_fma(p, f, vf_set1(0.05550713092088699f));
    p = vf_fma(p, f, vf_set1(0.24022120237350464f));
    p = vf_fma(p, f, vf_set1(0.6931469440460205f));
    p = vf_fma(p, f, vf_set1(1.0000001192092896f));
    return vf_scale2(p, n);
}

/* x Phi(x) = x (1/2 + erf(x / sqrt 2) / 2), where the second part is x P(x^2) / Q(x^2): the quotient of two polynomials of
 * degree 5 whose largest error on -5.5 .. 5.5 is least, 7e-9 before rounding and 1.7e-7 in float32. At 5.5 it comes out as 1/2
 * exactly; below -5.5 the result stays at its value there, 1e-7 from zero. */
INK_INLINE vf vf_gelu(vf above) {
    above = vf_max(vf_set1(-5.5f), above);
    vf x = vf_min(vf_set1(5.5f), above);
    vf z = vf_mul(x, x);
    vf p = vf_set1(2.2749336636707085e-08f), q = vf_set1(1.197504161609686e-06f);
    p = vf_fma(p, z, vf_set1(6.3521324591420125e-06f));
    q = vf_fma(q, z, vf_set1(7.364797056652606e-05f));
    p = vf_fma(p, z, vf_set1(0.0001688270567683503f));
    q = vf_fma(q, z, vf_set1(0.0018844526493921876f));
    p = vf_fma(p, z, vf_set1(0.004677269142121077f));
    q = vf_fma(q, z, vf_set1(0.028645947575569153f));
    p = vf_fma(p, z, vf_set1(0.03385277837514877f));
    q = vf_fma(q, z, vf_set1(0.2515222430229187f));
    p = vf_fma(p, z, vf_set1(0.398942232131958f));
    q = vf_fma(q, z, vf_set1(1.0f));
    return vf_fma(above, vf_min(vf_set1(0.5f), vf_div(vf_mul(x, p), q)), vf_mul(above, vf_set1(0.5f)));
}

INK_INLINE vf vf_tanh(vf x) {
    vf e = vf_exp(vf_mul(vf_abs(x), vf_set1(2.0f)));
    return vf_copysign(vf_sub(vf_set1(1.0f), vf_div(vf_set1(2.0f), vf_add(e, vf_set1(1.0f)))), x);
}

/* Where e^-x is as large as vf_exp makes it, the quotients below are 0 but for 1e-36; further down they would grow with x. */
INK_INLINE vf vf_activate(vf x, int mode) {
    if (mode == INK_GELU) return vf_gelu(x);
    if (mode == INK_GELU_TANH) { /* x (1 + tanh u) / 2 = x / (1 + e^-2u) */
        x = vf_max(vf_set1(-10.0f), x);
        vf twice = vf_mul(x, vf_fma(vf_mul(x, x), vf_set1(-1.5957691216f * 0.044715f), vf_set1(-1.5957691216f)));
        return vf_div(x, vf_add(vf_exp(twice), vf_set1(1.0f)));
    }
    if (mode == INK_SILU) {
        x = vf_max(vf_set1(-88.0f), x);
        vf e = vf_exp(vf_mul(x, vf_set1(-1.0f)));
        return vf_div(x, vf_add(e, vf_set1(1.0f)));
    }
    if (mode == INK_TANH) return vf_tanh(x);
    return mode == INK_RELU ? vf_max(vf_set1(0.0f), x) : x;
}

/* One function body for each activation: `mode` is a constant inside. */
#define INK_EACH_ACTIVATION(mode, BODY)                                                                                \
    switch (mode) {                                                                                                    \
    case INK_GELU: BODY(INK_GELU) break;                                                                               \
    case INK_GELU_TANH: BODY(INK_GELU_TANH) break;                                                                     \
    case INK_RELU: BODY(INK_RELU) break;                                                                               \
    case INK_SILU: BODY(INK_SILU) break;                                                                               \
    case INK_TANH: BODY(INK_TANH) break;                                                                               \
    default: BODY(INK_NONE)                                                                                            \
    }

/* c (rows, columns) = act(c); columns a multiple of 16. */
static void activate(float *c, int64_t ldc, int32_t rows, int32_t columns, int mode) {
    if (mode == INK_NONE) return;
    for (int32_t r = 0; r < rows; r++) {
        float *row = c + r * ldc;
#define BODY(MODE)                                                                                                     \
    for (int32_t j = 0; j < columns; j += VW) vf_store(row + j, vf_activate(vf_load(row + j), MODE));
        INK_EACH_ACTIVATION(mode, BODY)
#undef BODY
    }
}

/* The processor's correctly rounded square root. */
INK_INLINE float ink_sqrt(float x) {
#if defined(__aarch64__)
    return vgetq_lane_f32(vsqrtq_f32(vdupq_n_f32(x)), 0);
#else
    return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x)));
#endif
}

/* The whole vectors of a row, from element j on, for sums and maxima in INK_PARTS parts: a single one would wait for itself. */
#define INK_PARTS 4
#define each_vector(j, part, whole)                                                                                    \
    for (int32_t start_ = 0; start_ < (whole); start_ += INK_PARTS * VW)                                               \
        INK_UNROLL(4)                                                                                                  \
        for (int part = 0; part < INK_PARTS; part++)                                                                   \
            for (int32_t j = start_ + part * VW, once_ = 1; once_ && j < (whole); once_ = 0)
typedef struct {
    vf part[INK_PARTS];
} parts_t;
INK_INLINE parts_t parts_of(float x) { return (parts_t){{vf_set1(x), vf_set1(x), vf_set1(x), vf_set1(x)}}; }
INK_INLINE vf parts_sum(const parts_t *p) {
    return vf_add(vf_add(p->part[0], p->part[1]), vf_add(p->part[2], p->part[3]));
}
INK_INLINE vf parts_max(const parts_t *p) {
    return vf_max(vf_max(p->part[0], p->part[1]), vf_max(p->part[2], p->part[3]));
}

/* out (n) = act(a) * b; tails go through a whole vector of zeros. */
static void gate_row(const float *a, const float *b, float *out, int32_t n, int mode) {
    int32_t whole = n - n % VW, rest = n % VW;
#define BODY(MODE)                                                                                                     \
    {                                                                                                                  \
        for (int32_t j = 0; j < whole; j += VW)                                                                        \
            vf_store(out + j, vf_mul(vf_activate(vf_load(a + j), MODE), vf_load(b + j)));                              \
        if (rest)                                                                                                      \
            vf_store_n(out + whole,                                                                                    \
                       vf_mul(vf_activate(vf_load_n(a + whole, rest), MODE), vf_load_n(b + whole, rest)), rest);       \
    }
    INK_EACH_ACTIVATION(mode, BODY)
#undef BODY
}

/* out = a + b over n elements. */
static void add_row(const float *a, const float *b, float *out, int32_t n) {
    int32_t whole = n - n % VW;
    for (int32_t j = 0; j < whole; j += VW) vf_store(out + j, vf_add(vf_load(a + j), vf_load(b + j)));
    for (int32_t j = whole; j < n; j++) out[j] = a[j] + b[j];
}

/* out = x / sqrt(mean(x^2) + eps) * weight (Zhang and Sennrich 2019); out may be x. */
static void rms_row(const float *x, float *out, const float *weight, int32_t n, float eps) {
    int32_t whole = n - n % VW, rest = n % VW;
    parts_t squares = parts_of(0.0f);
    each_vector(j, p, whole) squares.part[p] = vf_fma(vf_load(x + j), vf_load(x + j), squares.part[p]);
    if (rest) squares.part[0] = vf_fma(vf_load_n(x + whole, rest), vf_load_n(x + whole, rest), squares.part[0]);
    vf scale = vf_set1(1.0f / ink_sqrt(vf_sum(parts_sum(&squares)) / (float)n + eps));
    for (int32_t j = 0; j < whole; j += VW)
        vf_store(out + j, vf_mul(vf_mul(vf_load(x + j), scale), vf_load(weight + j)));
    if (rest) {
        vf y = vf_mul(vf_mul(vf_load_n(x + whole, rest), scale), vf_load_n(weight + whole, rest));
        vf_store_n(out + whole, y, rest);
    }
}

/* Rotate one head of d elements by its position (Su et al. 2021), halves paired: element i with element i + d / 2. */
static void rotate_row(const float *x, float *out, const float *cosine, const float *sine, int32_t d) {
    int32_t half = d / 2, whole = half - half % VW;
    for (int32_t j = 0; j < whole; j += VW) {
        vf a = vf_load(x + j), b = vf_load(x + half + j), c = vf_load(cosine + j), s = vf_load(sine + j);
        vf_store(out + j, vf_sub(vf_mul(a, c), vf_mul(b, s)));
        vf_store(out + half + j, vf_add(vf_mul(b, c), vf_mul(a, s)));
    }
    for (int32_t j = whole; j < half; j++) {
        float a = x[j], b = x[half + j];
        out[j] = a * cosine[j] - b * sine[j];
        out[half + j] = b * cosine[j] + a * sine[j];
    }
}

/* out = (a + b - mean) / sqrt(variance + eps) * weight + bias over n elements; b and bias may be NULL. Two passes, float32. */
static void layer_norm_row(const float *a, const float *b, float *out, const float *weight, const float *bias,
                           int32_t n, float eps) {
    int32_t whole = n - n % VW, rest = n % VW;
    parts_t sum = parts_of(0.0f), squares = sum;
    each_vector(j, p, whole) {
        vf x = b ? vf_add(vf_load(a + j), vf_load(b + j)) : vf_load(a + j);
        vf_store(out + j, x);
        sum.part[p] = vf_add(sum.part[p], x);
    }
    if (rest) {
        vf x = vf_load_n(a + whole, rest);
        if (b) x = vf_add(x, vf_load_n(b + whole, rest));
        vf_store_n(out + whole, x, rest);
        sum.part[0] = vf_add(sum.part[0], x);
    }
    float mean = vf_sum(parts_sum(&sum)) / (float)n;
    vf shift = vf_set1(-mean);
    each_vector(j, p, whole) {
        vf x = vf_add(vf_load(out + j), shift);
        vf_store(out + j, x);
        squares.part[p] = vf_fma(x, x, squares.part[p]);
    }
    for (int32_t j = whole; j < n; j++) out[j] -= mean;
    if (rest) {
        vf x = vf_load_n(out + whole, rest);
        squares.part[0] = vf_fma(x, x, squares.part[0]);
    }
    vf scale = vf_set1(1.0f / ink_sqrt(vf_sum(parts_sum(&squares)) / (float)n + eps));
    for (int32_t j = 0; j < whole; j += VW)
        vf_store(out + j, vf_fma(vf_mul(vf_load(out + j), scale), vf_load(weight + j),
                                 bias ? vf_load(bias + j) : vf_set1(0.0f)));
    if (rest) {
        vf x = vf_mul(vf_load_n(out + whole, rest), scale), shift = bias ? vf_load_n(bias + whole, rest) : vf_set1(0.0f);
        vf_store_n(out + whole, vf_fma(x, vf_load_n(weight + whole, rest), shift), rest);
    }
}

/* out = a / max(|a|, 1e-12). */
static void unit_row(const float *a, float *out, int32_t n) {
    int32_t whole = n - n % VW, rest = n % VW;
    parts_t squares = parts_of(0.0f);
    each_vector(j, p, whole) squares.part[p] = vf_fma(vf_load(a + j), vf_load(a + j), squares.part[p]);
    if (rest) squares.part[0] = vf_fma(vf_load_n(a + whole, rest), vf_load_n(a + whole, rest), squares.part[0]);
    float length = ink_sqrt(vf_sum(parts_sum(&squares)));
    vf divisor = vf_set1(length > 1e-12f ? length : 1e-12f);
    for (int32_t j = 0; j < whole; j += VW) vf_store(out + j, vf_div(vf_load(a + j), divisor));
    if (rest) vf_store_n(out + whole, vf_div(vf_load_n(a + whole, rest), divisor), rest);
}

/* out (depth) int16 = round(a / scale), zero past n; returns scale = max |a| / INK_ROW_LIMIT, NaN where a holds NaN or infinity: codes
 * cannot say so, and the row must not come out as numbers. Then, and where all of a is next to nothing, codes are zeros: none may
 * pass the limit. */
static float quantize_row(const float *a, int16_t *out, int32_t n, int32_t depth) {
    int32_t whole = n - n % VW, rest = n % VW;
    parts_t top = parts_of(0.0f), nothing = top;
    each_vector(j, p, whole) {
        vf x = vf_load(a + j);
        top.part[p] = vf_max(top.part[p], vf_abs(x));
        nothing.part[p] = vf_fma(x, vf_set1(0.0f), nothing.part[p]);
    }
    if (rest) {
        vf x = vf_load_n(a + whole, rest);
        top.part[0] = vf_max(top.part[0], vf_abs(x));
        nothing.part[0] = vf_fma(x, vf_set1(0.0f), nothing.part[0]);
    }
    float largest = vf_largest(parts_max(&top)), no_number = vf_sum(parts_sum(&nothing));
    if (!(largest > INK_FAINTEST) || no_number != 0.0f) {
        memset(out, 0, (size_t)depth * sizeof(int16_t));
        return largest / INK_ROW_LIMIT + no_number;
    }
    vf inverse = vf_set1(INK_ROW_LIMIT / largest);
    for (int32_t j = 0; j < whole; j += VW) vi_store16(out + j, vi_from_vf(vf_mul(vf_load(a + j), inverse)));
    if (rest) {
        int16_t lanes[VW];
        vi_store16(lanes, vi_from_vf(vf_mul(vf_load_n(a + whole, rest), inverse)));
        memcpy(out + whole, lanes, (size_t)rest * sizeof(int16_t));
    }
    if (depth > n) memset(out + n, 0, (size_t)(depth - n) * sizeof(int16_t));
    return largest / INK_ROW_LIMIT;
}

#ifdef INK_DOT4
/* out (depth) 8-bit codes with x ~ scale * (code - INK_CODE_ZERO) + least, whatever past n; row: scale, and the shift such that
 * x ~ scale * code + shift. A row of equal values has scale 1 and codes of INK_CODE_ZERO. */
static void quantize_row8(const float *a, int8_t *out, int32_t n, int32_t depth, float row[2]) {
    int32_t whole = n - n % VW, rest = n % VW;
    vf high = vf_set1(a[0]), low = high;
    parts_t some = parts_of(0.0f);
    each_vector(j, p, whole) {
        high = vf_max(high, vf_load(a + j));
        low = vf_min(low, vf_load(a + j));
        some.part[p] = vf_fma(vf_load(a + j), vf_set1(0.0f), some.part[p]);
    }
    if (rest) some.part[0] = vf_fma(vf_load_n(a + whole, rest), vf_set1(0.0f), some.part[0]);
    vf nothing = parts_sum(&some);
    float least = -vf_largest(vf_mul(low, vf_set1(-1.0f))), most = vf_largest(high);
    for (int32_t j = whole; j < n; j++) {
        least = a[j] < least ? a[j] : least;
        most = a[j] > most ? a[j] : most;
    }
    float scale = most > least ? (most - least) / 255.0f : 1.0f;
    vf inverse = vf_set1(most > least ? 255.0f / (most - least) : 0.0f), shift = vf_set1(-least);
    vi zero = vi_set1(INK_CODE_ZERO);
    for (int32_t j = 0; j < whole; j += VW)
        vi_store8(out + j, vi_add(vi_from_vf(vf_mul(vf_add(vf_load(a + j), shift), inverse)), zero));
    if (rest) {
        int8_t lanes[VW];
        vi_store8(lanes, vi_add(vi_from_vf(vf_mul(vf_add(vf_load_n(a + whole, rest), shift), inverse)), zero));
        memcpy(out + whole, lanes, (size_t)rest);
    }
    if (depth > n) memset(out + n, 0, (size_t)(depth - n));
    row[0] = scale + vf_sum(nothing); /* NaN where a holds NaN or infinity, as above */
    row[1] = least - scale * (float)INK_CODE_ZERO;
}
#endif

#endif
