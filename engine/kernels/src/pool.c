#include "pool.h"

#include <stdlib.h>

#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
typedef SRWLOCK lock_t;
typedef CONDITION_VARIABLE cond_t;
typedef HANDLE thread_t;
#define lock_init(l) InitializeSRWLock(l)
#define lock_free(l) ((void)(l))
#define lock_take(l) AcquireSRWLockExclusive(l)
#define lock_drop(l) ReleaseSRWLockExclusive(l)
#define cond_init(c) InitializeConditionVariable(c)
#define cond_free(c) ((void)(c))
#define cond_wait(c, l) SleepConditionVariableSRW(c, l, INFINITE, 0)
#define cond_wake_all(c) WakeAllConditionVariable(c)
#define THREAD_RESULT DWORD WINAPI
#else
#include <pthread.h>
#include <sched.h>
typedef pthread_mutex_t lock_t;
typedef pthread_cond_t cond_t;
typedef pthread_t thread_t;
#define lock_init(l) pthread_mutex_init(l, NULL)
#define lock_free(l) pthread_mutex_destroy(l)
#define lock_take(l) pthread_mutex_lock(l)
#define lock_drop(l) pthread_mutex_unlock(l)
#define cond_init(c) pthread_cond_init(c, NULL)
#define cond_free(c) pthread_cond_destroy(c)
#define cond_wait(c, l) pthread_cond_wait(c, l)
#define cond_wake_all(c) pthread_cond_broadcast(c)
#define THREAD_RESULT void *
#endif

/* About 20 microseconds of looking before parking: a second job that follows at once finds the workers awake. */
#define SPINS_BEFORE_PARKING 400

typedef struct {
    ink_pool *pool;
    int32_t index;
    thread_t thread;
} worker_t;

struct ink_pool {
    lock_t lock;
    cond_t wake, left;
    int32_t workers, started;
    int32_t generation; /* counts jobs; read by spinning workers without the lock */
    int32_t inside, stop;
    void (*job)(void *, int32_t);
    void *context;
    worker_t *threads;
};

void ink_pause(void) {
#if defined(__x86_64__) || defined(_M_X64)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

void ink_yield(void) {
#ifdef _WIN32
    SwitchToThread();
#else
    sched_yield();
#endif
}

static THREAD_RESULT work(void *argument) {
    worker_t *self = argument;
    ink_pool *pool = self->pool;
    int32_t seen = 0;
    lock_take(&pool->lock);
    for (;;) {
        if (pool->generation == seen && !pool->stop) {
            lock_drop(&pool->lock);
            for (int i = 0; i < SPINS_BEFORE_PARKING && __atomic_load_n(&pool->generation, __ATOMIC_ACQUIRE) == seen; i++)
                ink_pause();
            lock_take(&pool->lock);
            while (pool->generation == seen && !pool->stop) cond_wait(&pool->wake, &pool->lock);
        }
        if (pool->stop) break;
        seen = pool->generation;
        if (!pool->job) continue; /* too late: the job is closed */
        void (*job)(void *, int32_t) = pool->job;
        void *context = pool->context;
        pool->inside++;
        lock_drop(&pool->lock);
        job(context, self->index);
        lock_take(&pool->lock);
        if (--pool->inside == 0) cond_wake_all(&pool->left);
    }
    lock_drop(&pool->lock);
    return 0;
}

ink_pool *ink_pool_new(int32_t workers) {
    ink_pool *pool = calloc(1, sizeof *pool);
    if (!pool) return NULL;
    pool->threads = calloc((size_t)workers, sizeof *pool->threads);
    if (!pool->threads) {
        free(pool);
        return NULL;
    }
    lock_init(&pool->lock);
    cond_init(&pool->wake);
    cond_init(&pool->left);
    pool->workers = workers;
    for (int32_t i = 1; i < workers; i++) {
        worker_t *worker = &pool->threads[i];
        worker->pool = pool;
        worker->index = i;
#ifdef _WIN32
        worker->thread = CreateThread(NULL, 0, work, worker, 0, NULL);
        int failed = worker->thread == NULL;
#else
        int failed = pthread_create(&worker->thread, NULL, work, worker) != 0;
#endif
        if (failed) {
            ink_pool_free(pool);
            return NULL;
        }
        pool->started = i;
    }
    return pool;
}

void ink_pool_free(ink_pool *pool) {
    lock_take(&pool->lock);
    pool->stop = 1;
    cond_wake_all(&pool->wake);
    lock_drop(&pool->lock);
    for (int32_t i = 1; i <= pool->started; i++) {
#ifdef _WIN32
        WaitForSingleObject(pool->threads[i].thread, INFINITE);
        CloseHandle(pool->threads[i].thread);
#else
        pthread_join(pool->threads[i].thread, NULL);
#endif
    }
    cond_free(&pool->wake);
    cond_free(&pool->left);
    lock_free(&pool->lock);
    free(pool->threads);
    free(pool);
}

int32_t ink_pool_workers(const ink_pool *pool) { return pool->workers; }

void ink_pool_run(ink_pool *pool, void (*job)(void *, int32_t), void *context) {
    if (pool->workers > 1) {
        lock_take(&pool->lock);
        pool->job = job;
        pool->context = context;
        __atomic_fetch_add(&pool->generation, 1, __ATOMIC_RELEASE);
        cond_wake_all(&pool->wake);
        lock_drop(&pool->lock);
    }
    job(context, 0);
    if (pool->workers > 1) {
        lock_take(&pool->lock);
        pool->job = NULL;
        while (pool->inside) cond_wait(&pool->left, &pool->lock);
        lock_drop(&pool->lock);
    }
}
