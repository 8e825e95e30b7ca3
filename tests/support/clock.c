/* Answers the wall clock from eight bytes of shared memory, for a process that preloads this object.
 *
 * The file named by REDISQ_CLOCK_FILE holds one int64: microseconds since the epoch. While it holds 0, or the
 * variable or the file is missing, every call answers the real clock. CLOCK_MONOTONIC and all other clocks are
 * always the real ones: timers and timeouts of the process keep running while its wall clock stands still.
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

static const int64_t *shared_us;

__attribute__((constructor)) static void map_clock(void)
{
    const char *path = getenv("REDISQ_CLOCK_FILE");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *page = mmap(NULL, sizeof *shared_us, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (page != MAP_FAILED)
        shared_us = page;
}

/* The virtual time in microseconds, or 0: ask the real clock. */
static int64_t virtual_us(void)
{
    return shared_us ? __atomic_load_n(shared_us, __ATOMIC_ACQUIRE) : 0;
}

int clock_gettime(clockid_t id, struct timespec *out)
{
    int64_t us = id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE ? virtual_us() : 0;
    if (us == 0)
        return (int)syscall(SYS_clock_gettime, id, out);
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
