/* Answers the wall clock from sixteen bytes of shared memory, for a process that preloads this object.
 *
 * The file named by REDISQ_CLOCK_FILE holds two int64. The first is an instant, in microseconds since the epoch, at
 * which the clock stands. While it is 0 the clock runs, the second number of microseconds ahead of the real one. Without
 * the variable or the file every call answers the real clock. CLOCK_MONOTONIC and all other clocks are always the real
 * ones: timers and timeouts of the process keep running while its wall clock stands still.
 *
 * Nothing here allocates: a server's allocator may itself ask for the time while it starts. The object needs no
 * library of its own, so one file serves every libc that lets functions be interposed.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const int64_t *shared_us; /* the instant, and how far a running clock is ahead */

__attribute__((constructor)) static void map_clock(void)
{
    const char *path = getenv("REDISQ_CLOCK_FILE");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *page = mmap(NULL, 2 * sizeof *shared_us, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (page != MAP_FAILED)
        shared_us = page;
}

static int64_t shared(int cell)
{
    return shared_us ? __atomic_load_n(shared_us + cell, __ATOMIC_ACQUIRE) : 0;
}

int clock_gettime(clockid_t id, struct timespec *out)
{
    int wall = id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE;
    int64_t us = wall ? shared(0) : 0;
    if (us == 0) {
        int failed = (int)syscall(SYS_clock_gettime, id, out);
        int64_t ahead_us = wall ? shared(1) : 0;
        if (failed || ahead_us == 0)
            return failed;
        us = out->tv_sec * INT64_C(1000000) + out->tv_nsec / 1000 + ahead_us;
    }
    out->tv_sec = us / 1000000;
    out->tv_nsec = us % 1000000 * 1000;
    return 0;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return -1;
    out->tv_sec = now.tv_sec;
    out->tv_usec = now.tv_nsec / 1000;
    if (zone)
        *(struct timezone *)zone = (struct timezone){0};
    return 0;
}

time_t time(time_t *out)
{
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return -1;
    if (out)
        *out = now.tv_sec;
    return now.tv_sec;
}
