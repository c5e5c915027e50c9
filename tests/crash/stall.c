/* A disk that stalls or fails, loaded with LD_PRELOAD: fdatasync and fsync wait for as long as the file STALL exists,
   and give EIO for as long as the file FAIL does. */

#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static int exists(const char *name)
{
    const char *file = getenv(name);
    return file && access(file, F_OK) == 0;
}

static int sync_by(long call, int fd)
{
    while (exists("STALL"))
        usleep(10000);
    if (exists("FAIL")) {
        errno = EIO;
        return -1;
    }
    return syscall(call, fd);
}

int fdatasync(int fd)
{
    return sync_by(SYS_fdatasync, fd);
}

int fsync(int fd)
{
    return sync_by(SYS_fsync, fd);
}
