/* Writes down how much of each file is on the disk, for a process that preloads this object.
 *
 * After every fsync and fdatasync that succeeds, the file named by REDISQ_FSYNC_FILE gets a line "SIZE PATH": how many
 * bytes the file had when the call began, all of which a loss of power would leave.
 *
 * As clock.c it needs no library of its own, and nothing that an old libc lacks.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static int record = -1;

__attribute__((constructor)) static void open_record(void)
{
    const char *path = getenv("REDISQ_FSYNC_FILE");
    if (path)
        record = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
}

/* Decimal digits of value before end; where they begin. */
static char *digits(char *end, unsigned long value)
{
    do
        *--end = (char)('0' + value % 10);
    while (value /= 10);
    return end;
}

static void note(int fd, off_t size)
{
    char link[40], line[4200];
    char *end = link + sizeof link - 1;
    *end = 0;
    char *name = digits(end, (unsigned long)fd);
    const char folder[] = "/proc/self/fd/";
    for (int i = sizeof folder - 2; i >= 0; i--)
        *--name = folder[i];
    char *path = line + 24;
    long length = syscall(SYS_readlinkat, AT_FDCWD, name, path, sizeof line - 25);
    if (record < 0 || size < 0 || length < 0)
        return;
    path[length] = '\n';
    path[-1] = ' ';
    char *begin = digits(path - 1, (unsigned long)size);
    (void)!write(record, begin, (size_t)(path + length + 1 - begin));
}

/* The size of a file; its own offset is where it was, for what is synced is opened to append. */
static off_t size_of(int fd)
{
    return lseek(fd, 0, SEEK_END);
}

int fsync(int fd)
{
    off_t size = size_of(fd);
    int failed = (int)syscall(SYS_fsync, fd);
    if (!failed)
        note(fd, size);
    return failed;
}

int fdatasync(int fd)
{
    off_t size = size_of(fd);
    int failed = (int)syscall(SYS_fdatasync, fd);
    if (!failed)
        note(fd, size);
    return failed;
}
