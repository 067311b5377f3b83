/* Lets a program under callgrind say from where to where it counts. */
#include <callgrind.h>

__attribute__((visibility("default"))) void start_counting(void) { CALLGRIND_START_INSTRUMENTATION; }
__attribute__((visibility("default"))) void stop_counting(void) { CALLGRIND_STOP_INSTRUMENTATION; }
