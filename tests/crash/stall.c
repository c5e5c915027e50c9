/* A disk that stalls: loaded with LD_PRELOAD, fdatasync and fsync wait for as long as the file STALL exists. */

#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static void wait_for_disk(void)
{
    const char *stall = getenv("STALL");
    while (stall && access(stall, F_OK) == 0)
        usleep(10000);
}

int fdatasync(int fd)
{
    wait_for_disk();
    return syscall(SYS_fdatasync, fd);
}

int fsync(int fd)
{
    wait_for_disk();
    return syscall(SYS_fsync, fd);
}
