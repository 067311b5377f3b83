/* Emulates CPUID for libraries that masked.py has changed: their CPUID instructions are the undefined opcode 0F 04, and
 * what they are told here is a processor with AVX2 and FMA, but without AVX-512, VNNI in any form, and AMX.
 * Loaded with LD_PRELOAD; x86-64 Linux. For measuring only. */
#define _GNU_SOURCE
#include <cpuid.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>

#define BIT(n) (1u << (n))

static const unsigned char MARK[2] = {0x0f, 0x04};

/* F, DQ, IFMA, PF, ER, CD, BW, VL of AVX-512 */
static const unsigned LEAF7_EBX = BIT(16) | BIT(17) | BIT(21) | BIT(26) | BIT(27) | BIT(28) | BIT(30) | BIT(31);
/* VBMI, VBMI2, VNNI, BITALG, VPOPCNTDQ */
static const unsigned LEAF7_ECX = BIT(1) | BIT(6) | BIT(11) | BIT(12) | BIT(14);
/* 4VNNIW, 4FMAPS, VP2INTERSECT, AMX-BF16, AVX512-FP16, AMX-TILE, AMX-INT8 */
static const unsigned LEAF7_EDX = BIT(2) | BIT(3) | BIT(8) | BIT(22) | BIT(23) | BIT(24) | BIT(25);

static void answer(int signal_number, siginfo_t *info, void *context) {
    (void)info;
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
    if (memcmp((const void *)r[REG_RIP], MARK, sizeof MARK) != 0) {
        signal(signal_number, SIG_DFL); /* a true fault: it comes again, and ends the process */
        return;
    }
    unsigned leaf = (unsigned)r[REG_RAX], part = (unsigned)r[REG_RCX], a, b, c, d;
    __cpuid_count(leaf, part, a, b, c, d);
    if (leaf == 7 && part == 0) {
        b &= ~LEAF7_EBX;
        c &= ~LEAF7_ECX;
        d &= ~LEAF7_EDX;
    } else if (leaf == 7) {
        a = b = c = d = 0; /* AVX-VNNI, AVX512-BF16 and their likes: all newer than AVX2 */
    }
    r[REG_RAX] = a, r[REG_RBX] = b, r[REG_RCX] = c, r[REG_RDX] = d;
    r[REG_RIP] += sizeof MARK;
}

__attribute__((constructor)) static void start(void) {
    struct sigaction action = {0};
    action.sa_sigaction = answer;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGILL, &action, 0);
}
