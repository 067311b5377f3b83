/* What one core can do at all: twelve independent chains of 8-lane multiply-adds, nothing else. Prints 10^9 operations a second,
 * two a multiply-add: the best of some runs. Compiled and run by gemm.py. */
#include <immintrin.h>
#include <stdio.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(void) {
    const long turns = 20000000;
    double best = 1e9;
    __m256 sum[12], x = _mm256_set1_ps(0.5f);
    for (int run = 0; run < 8; run++) {
        for (int i = 0; i < 12; i++) sum[i] = _mm256_set1_ps((float)i);
        double start = now();
        for (long n = 0; n < turns; n++)
#pragma GCC unroll 12
            for (int i = 0; i < 12; i++) __asm__ volatile("vfmadd231ps %1, %1, %0" : "+x"(sum[i]) : "x"(x));
        double took = now() - start;
        best = took < best ? took : best;
    }
    printf("%.1f\n", (double)turns * 12 * 8 * 2 / best / 1e9);
    return 0;
}
