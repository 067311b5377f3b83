/* Runs the cases of cases.py on a processor without Python: linked statically with the kernels, started under an emulator.
 * Usage: driver CASES ISA. Prints one line a failure, then "results " and a hash of every result's bits, then "N passed,
 * M failed"; exit status 1 where any failed. Without arguments: the instruction sets that this processor runs, one a line. */
#include "ink.h"
#include "pool.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int32_t kind; /* 0 float32, 1 int32 or int64, 2 uint8 */
    int64_t bytes;
    void *data;
} array_t;

int32_t ink_isa_count(void);
const char *ink_isa_name(int32_t index);
int32_t ink_isa_runs(int32_t index);
void ink_run_plan(int32_t isa, ink_pool *pool, const ink_run *run);
void ink_scan_int8(int32_t, const int8_t *, const float *, const float *, float *, int64_t, int32_t);
void ink_maxsim(int32_t, const float *, int32_t, int32_t, const uint8_t *, const int64_t *, int64_t, float *, int32_t *,
                void *);
void ink_pack_bits(int32_t, const float *, uint8_t *, int64_t, int32_t);
void ink_gemm(int32_t, const float *, const float *, float *, int32_t, int32_t, int32_t, void *);
void ink_gemm_i8(int32_t, const int16_t *, const float *, const int8_t *, const int16_t *, const float *, float *, int32_t, int32_t,
                 int32_t, void *);
void ink_act(int32_t, float *, int64_t, int32_t);
int32_t ink_has_u8(int32_t);
void ink_gemm_u8(int32_t, const float *, const int8_t *, const float *, const float *, float *, int32_t, int32_t, int32_t,
                 void *);

static void *take(int64_t bytes) {
    void *data = NULL;
    if (posix_memalign(&data, 64, (size_t)bytes + 64)) exit(2);
    return data;
}

static void get(FILE *file, void *out, size_t bytes) {
    if (bytes && fread(out, bytes, 1, file) != 1) {
        fprintf(stderr, "the case file ends early\n");
        exit(2);
    }
}

static array_t get_array(FILE *file) {
    array_t array;
    get(file, &array.kind, 4);
    get(file, &array.bytes, 8);
    array.data = take(array.bytes);
    get(file, array.data, (size_t)array.bytes);
    return array;
}

/* Largest difference; NaN in what is wanted is not compared, NaN in the result is a failure. */
static float difference(const array_t *wanted, const void *got) {
    if (wanted->kind != 0) return memcmp(wanted->data, got, (size_t)wanted->bytes) ? INFINITY : 0.0f;
    float worst = 0.0f;
    for (int64_t i = 0; i < wanted->bytes / 4; i++) {
        float w = ((const float *)wanted->data)[i], g = ((const float *)got)[i];
        if (isnan(w)) continue;
        if (isnan(g)) return INFINITY;
        worst = fmaxf(worst, fabsf(w - g));
    }
    return worst;
}

/* Buffers start as NaN bytes, so that anything read before it was written shows. */
static void run_plan(int32_t isa, const int32_t ints[5], array_t *in, int32_t inputs, void **out) {
    int32_t ops = (int32_t)(in[0].bytes / (int64_t)sizeof(ink_op)), buffers = (int32_t)(in[5].bytes / 8);
    ink_op *op = in[0].data;
    for (int32_t i = 0; i < ops; i++) {
        const void **w[] = {&op[i].w0, &op[i].w1, &op[i].w2, &op[i].w3, &op[i].w4, &op[i].w5};
        for (int j = 0; j < 6; j++) {
            intptr_t number = (intptr_t)*w[j];
            if (number > inputs) exit(2);
            *w[j] = number ? in[number - 1].data : NULL;
        }
    }
    void **place = take(buffers * (int64_t)sizeof(void *));
    for (int32_t i = 0; i < buffers; i++) {
        int64_t bytes = ((const int64_t *)in[5].data)[i];
        place[i] = take(bytes);
        memset(place[i], 0xff, (size_t)bytes);
    }
    int32_t *counters = calloc((size_t)(2 * ops), sizeof(int32_t));
    ink_pool *pool = ink_pool_new(2);
    int32_t texts = (int32_t)(in[4].bytes / 8), longest = 0;
    const int64_t *starts = in[4].data, *ends = in[7].data;
    for (int32_t i = 0; i < texts; i++)
        if (ends[i] - starts[i] > longest) longest = (int32_t)(ends[i] - starts[i]);
    ink_run run = {
        .ops = op, .op_count = ops, .tokens = (int32_t)(in[1].bytes / 4), .texts = texts, .longest = longest,
        .prompt = ints[2], .ids = in[1].data, .positions = in[2].data, .types = in[3].data, .starts = starts, .ends = ends,
        .workers = 2, .paired = ints[4],
        .visible = in[6].bytes ? in[6].data : NULL, .buffers = place, .next = counters, .done = counters + ops, .scratch = take(2 * (int64_t)ints[3]),
        .scratch_bytes = ints[3],
    };
    ink_run_plan(isa, pool, &run);
    ink_pool_free(pool);
    out[0] = place[ints[0]];
    out[1] = place[ints[1]];
}

/* FNV-1a, 64 bits. */
static uint64_t hashed(uint64_t hash, const uint8_t *data, int64_t bytes) {
    for (int64_t i = 0; i < bytes; i++) hash = (hash ^ data[i]) * 0x100000001b3u;
    return hash;
}

static int run_case(FILE *file, int32_t isa, uint64_t *hash) {
    int32_t head[8];
    float bound;
    get(file, head, sizeof head);
    get(file, &bound, 4);
    const int32_t *n = head + 1;
    int32_t inputs = head[6], outputs = head[7];
    array_t in[200], wanted[2];
    if (inputs > 200 || outputs > 2) exit(2);
    for (int32_t i = 0; i < inputs; i++) in[i] = get_array(file);
    for (int32_t i = 0; i < outputs; i++) wanted[i] = get_array(file);
    void *out[2] = {NULL, NULL};
    for (int32_t i = 0; i < outputs; i++) {
        out[i] = take(wanted[i].bytes);
        memset(out[i], 0xff, (size_t)wanted[i].bytes);
    }
    switch (head[0]) {
    case 0: ink_gemm(isa, in[0].data, in[1].data, out[0], n[0], n[1], n[2], n[3] ? take(INK_PAIR_BYTES) : NULL); break;
    case 1:
        ink_gemm_i8(isa, in[0].data, in[1].data, in[2].data, in[3].data, in[4].data, out[0], n[0], n[1], n[2],
                    n[3] ? take(INK_PAIR_BYTES) : NULL);
        break;
    case 2:
        memcpy(out[0], in[0].data, (size_t)in[0].bytes);
        ink_act(isa, out[0], n[0], n[1]);
        break;
    case 3: ink_scan_int8(isa, in[0].data, in[1].data, in[2].data, out[0], n[0], n[1]); break;
    case 4: ink_maxsim(isa, in[0].data, n[0], n[1], in[1].data, in[2].data, n[2], out[0], out[1], take(1 << 20)); break;
    case 5: ink_pack_bits(isa, in[0].data, out[0], n[0], n[1]); break;
    case 7:
        ink_gemm_u8(isa, in[0].data, in[1].data, in[2].data, in[3].data, out[0], n[0], n[1], n[2], take(1 << 20));
        break;
    default: run_plan(isa, n, in, inputs, out);
    }
    int failed = 0;
    for (int32_t i = 0; i < outputs; i++) {
        float worst = difference(&wanted[i], out[i]);
        *hash = hashed(*hash, out[i], wanted[i].bytes);
        if (!(worst <= bound)) {
            printf("kernel %d (%d, %d, %d, %d) output %d: difference %g, bound %g\n", (int)head[0], (int)n[0], (int)n[1],
                   (int)n[2], (int)n[3], (int)i, (double)worst, (double)bound);
            failed = 1;
        }
    }
    return failed;
}

int main(int argc, char **argv) {
    FILE *file = argc == 3 ? fopen(argv[1], "rb") : NULL;
    int32_t isa = -1, count, failed = 0;
    uint64_t hash = 0xcbf29ce484222325u;
    if (argc == 1) {
        for (int32_t i = 0; i < ink_isa_count(); i++)
            if (ink_isa_runs(i)) puts(ink_isa_name(i));
        return 0;
    }
    for (int32_t i = 0; argc == 3 && i < ink_isa_count(); i++)
        if (!strcmp(ink_isa_name(i), argv[2])) isa = i;
    if (!file || isa < 0) {
        fprintf(stderr, "usage: driver [CASES ISA]\n");
        return 2;
    }
    get(file, &count, 4);
    for (int32_t i = 0; i < count; i++) failed += run_case(file, isa, &hash);
    printf("results %016llx\n", (unsigned long long)hash);
    printf("%d passed, %d failed\n", (int)(count - failed), (int)failed);
    return failed ? 1 : 0;
}
