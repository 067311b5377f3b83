/* The exported functions: which instruction sets this library holds and this processor runs, and the calls themselves. */
#include "ink.h"
#include "pool.h"

#ifdef _WIN32
#define INK_EXPORT __declspec(dllexport)
#else
#define INK_EXPORT __attribute__((visibility("default")))
#endif

#ifndef INK_SOURCE_HASH
#define INK_SOURCE_HASH "unknown"
#endif

#if defined(__x86_64__)
extern const ink_isa ink_isa_baseline, ink_isa_avx2, ink_isa_avxvnni, ink_isa_avx512, ink_isa_avx512vnni;
/* From the simplest to the best: the last that runs is taken. */
enum { BASELINE, AVX2, AVXVNNI, AVX512, AVX512VNNI };
static const ink_isa *const isas[] = {&ink_isa_baseline, &ink_isa_avx2, &ink_isa_avxvnni, &ink_isa_avx512,
                                      &ink_isa_avx512vnni};

static void cpuid(uint32_t leaf, uint32_t sub, uint32_t out[4]) {
    __asm__ volatile("cpuid" : "=a"(out[0]), "=b"(out[1]), "=c"(out[2]), "=d"(out[3]) : "a"(leaf), "c"(sub));
}

/* The register state that the operating system saves: bits 1-2 SSE and AVX, 5-7 AVX-512. */
static uint64_t saved_state(void) {
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return ((uint64_t)high << 32) | low;
}

static int runs(int32_t index) {
    uint32_t one[4], seven[4], more[4], top[4];
    if (index == BASELINE) return 1;
    cpuid(0, 0, top);
    if (top[0] < 7) return 0;
    cpuid(1, 0, one);
    cpuid(7, 0, seven);
    cpuid(7, 1, more);
    const uint32_t fma = 1u << 12, osxsave = 1u << 27, avx = 1u << 28, f16c = 1u << 29;
    if ((one[2] & (fma | osxsave | avx | f16c)) != (fma | osxsave | avx | f16c)) return 0;
    if ((saved_state() & 0x6) != 0x6 || !(seven[1] & (1u << 5))) return 0;
    if (index == AVX2) return 1;
    if (index == AVXVNNI) return seven[0] >= 1 && (more[0] & (1u << 4)) != 0;
    const uint32_t f = 1u << 16, dq = 1u << 17, bw = 1u << 30, vl = 1u << 31;
    if ((saved_state() & 0xe6) != 0xe6 || (seven[1] & (f | dq | bw | vl)) != (f | dq | bw | vl)) return 0;
    return index == AVX512 || (seven[2] & (1u << 11)) != 0;
}
#elif defined(__aarch64__)
#if defined(__linux__)
#include <sys/auxv.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#elif defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#endif
extern const ink_isa ink_isa_neon, ink_isa_neondot, ink_isa_neoni8mm;
enum { NEON, NEONDOT, NEONI8MM };
static const ink_isa *const isas[] = {&ink_isa_neon, &ink_isa_neondot, &ink_isa_neoni8mm};

/* Products of four (FEAT_DotProd; every Apple processor that runs this has them), and of matrices (FEAT_I8MM) besides. The
 * numbers stand here because not every compiler's headers have the names. */
#if defined(__linux__)
static int has_dot(void) { return (getauxval(AT_HWCAP) & (1ul << 20)) != 0; }
static int has_i8mm(void) { return (getauxval(26 /* AT_HWCAP2 */) & (1ul << 13)) != 0; }
#elif defined(_WIN32)
static int has_dot(void) { return IsProcessorFeaturePresent(43); /* PF_ARM_V82_DP_INSTRUCTIONS_AVAILABLE */ }
static int has_i8mm(void) { return IsProcessorFeaturePresent(66); /* PF_ARM_V82_I8MM_INSTRUCTIONS_AVAILABLE */ }
#elif defined(__APPLE__)
static int has_dot(void) { return 1; }
static int has_i8mm(void) {
    int32_t value = 0;
    size_t size = sizeof value;
    return sysctlbyname("hw.optional.arm.FEAT_I8MM", &value, &size, NULL, 0) == 0 && value != 0;
}
#else
static int has_dot(void) { return 0; }
static int has_i8mm(void) { return 0; }
#endif

static int runs(int32_t index) {
    if (index == NEON) return 1;
    return has_dot() && (index == NEONDOT || has_i8mm());
}
#else
#error "no kernels for this processor"
#endif

INK_EXPORT const char *ink_source_hash(void) { return INK_SOURCE_HASH; }
INK_EXPORT int32_t ink_isa_count(void) { return (int32_t)(sizeof isas / sizeof *isas); }
INK_EXPORT const char *ink_isa_name(int32_t index) { return isas[index]->name; }
INK_EXPORT int32_t ink_isa_runs(int32_t index) { return runs(index); }

INK_EXPORT ink_pool *ink_new_pool(int32_t workers) { return ink_pool_new(workers); }
INK_EXPORT void ink_free_pool(ink_pool *pool) { ink_pool_free(pool); }

typedef struct {
    const ink_isa *isa;
    const ink_run *run;
} job_t;

/* Each worker walks the whole plan, taking tiles of the current operation until none is left, and goes on when the last
 * taken tile is done. A worker that arrives late runs through the finished operations without waiting. */
static void walk(void *context, int32_t worker) {
    const job_t *job = context;
    const ink_run *run = job->run;
    char *scratch = (char *)run->scratch + worker * run->scratch_bytes;
    for (int32_t i = 0; i < run->op_count; i++) {
        const ink_op *op = &run->ops[i];
        int32_t tiles = job->isa->tiles(op, run), tile;
        while ((tile = __atomic_fetch_add(&run->next[i], 1, __ATOMIC_RELAXED)) < tiles) {
            job->isa->tile(op, run, tile, scratch);
            __atomic_fetch_add(&run->done[i], 1, __ATOMIC_RELEASE);
        }
        for (int32_t spins = 0; __atomic_load_n(&run->done[i], __ATOMIC_ACQUIRE) < tiles; spins++)
            spins < 2000 ? ink_pause() : ink_yield();
    }
}

INK_EXPORT void ink_run_plan(int32_t isa, ink_pool *pool, const ink_run *run) {
    job_t job = {isas[isa], run};
    ink_pool_run(pool, walk, &job);
}

INK_EXPORT void ink_scan_int8(int32_t isa, const int8_t *codes, const float *scales, const float *query, float *out,
                              int64_t n, int32_t dim) {
    isas[isa]->scan_int8(codes, scales, query, out, n, dim);
}

INK_EXPORT void ink_maxsim(int32_t isa, const float *query, int32_t q, int32_t dim, const uint8_t *bits,
                           const int64_t *starts, int64_t count, float *best, int32_t *where, void *scratch) {
    isas[isa]->maxsim(query, q, dim, bits, starts, count, best, where, scratch);
}

INK_EXPORT void ink_pack_bits(int32_t isa, const float *x, uint8_t *out, int64_t rows, int32_t dim) {
    isas[isa]->pack_bits(x, out, rows, dim);
}

INK_EXPORT void ink_gemm(int32_t isa, const float *a, const float *panels, float *out, int32_t m, int32_t k, int32_t n,
                         void *scratch) {
    isas[isa]->gemm(a, panels, out, m, k, n, scratch);
}

INK_EXPORT void ink_gemm_i8(int32_t isa, const int16_t *a, const float *row_scales, const int8_t *panels,
                            const int16_t *multipliers, const float *scales, float *out, int32_t m, int32_t k, int32_t n,
                            void *scratch) {
    isas[isa]->gemm_i8(a, row_scales, panels, multipliers, scales, out, m, k, n, scratch);
}

/* Whether ink_gemm_u8 and INK_LINEAR_U8 are there. */
INK_EXPORT int32_t ink_has_u8(int32_t isa) { return isas[isa]->gemm_u8 != NULL; }

INK_EXPORT void ink_gemm_u8(int32_t isa, const float *a, const int8_t *panels, const float *scales,
                            const float *column_sums, float *out, int32_t m, int32_t k, int32_t n, void *scratch) {
    isas[isa]->gemm_u8(a, panels, scales, column_sums, out, m, k, n, scratch);
}

INK_EXPORT void ink_act(int32_t isa, float *x, int64_t n, int32_t mode) { isas[isa]->act(x, n, mode); }
