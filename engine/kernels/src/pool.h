/* A pool of worker threads: parked and silent when idle, awake for a moment after each job. */
#ifndef INK_POOL_H
#define INK_POOL_H

#include <stdint.h>

typedef struct ink_pool ink_pool;

/* workers >= 1 counts the calling thread; NULL when memory or threads cannot be had. */
ink_pool *ink_pool_new(int32_t workers);
void ink_pool_free(ink_pool *pool);
int32_t ink_pool_workers(const ink_pool *pool);

/* Runs job(context, worker) on the caller (worker 0) and on every worker that wakes in time; returns when none is inside.
 * A worker that the machine schedules late finds the job closed and goes back to sleep, so nobody waits for it.
 * One job at a time: the caller holds a lock of its own. */
void ink_pool_run(ink_pool *pool, void (*job)(void *context, int32_t worker), void *context);

/* A short pause inside a spin loop, and giving the processor away. */
void ink_pause(void);
void ink_yield(void);

#endif
