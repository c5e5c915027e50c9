/* A log of what a process gives to one file and to its clients, in the order in which the kernel got it.

   Loaded with LD_PRELOAD. The file is named by WRITE_LOG_OF, the log by WRITE_LOG; several processes may share both.
   A record is appended once its call has returned, in one write: a header of 24 bytes in the order of this machine, and
   then the data. bench/power.py reads it.

     'W'  data was written at `offset`; flag 1 = through a descriptor that makes each write durable (O_DSYNC, O_SYNC)
     'S'  everything written before is durable: fsync or fdatasync of the file
     'D'  the names in a directory are durable: fsync of it; the data is its path
     'T'  the file was cut, or made longer, to `offset` bytes
     'M'  the file was mapped for writing: what changes it from here on is not in the log
     'A'  data was sent to another machine or program: on a socket that is not local, whose descriptor is `offset`

   The calls go straight to the kernel, so that nothing has to be looked up, whenever the first of them comes. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MOST_PARTS = 256 }; /* of one write; LMDB gathers 64 pages */

struct header {
    uint8_t kind, durable;
    uint16_t unused;
    uint32_t process;
    uint64_t length, offset;
};

static const char *watched;
static int log_fd = -1;

__attribute__((constructor)) static void start(void)
{
    const char *name = getenv("WRITE_LOG");
    watched = getenv("WRITE_LOG_OF");
    if (name && watched)
        log_fd = syscall(SYS_openat, AT_FDCWD, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static void note(uint8_t kind, uint8_t durable, const struct iovec *parts, int count, uint64_t length, uint64_t offset)
{
    struct header header = {kind, durable, 0, getpid(), length, offset};
    struct iovec all[1 + MOST_PARTS];
    uint64_t left = length;
    int used = 1;
    all[0] = (struct iovec){&header, sizeof header};
    for (int part = 0; part < count && used <= MOST_PARTS && left; part++) {
        size_t taken = parts[part].iov_len < left ? parts[part].iov_len : left;
        all[used++] = (struct iovec){parts[part].iov_base, taken};
        left -= taken;
    }
    ssize_t written = syscall(SYS_writev, log_fd, all, used);
    if (left || written != (ssize_t)(sizeof header + length))
        abort(); /* a log with a gap proves nothing */
}

static int is_watched(int fd)
{
    struct stat file, named;
    return log_fd >= 0 && !fstat(fd, &file) && S_ISREG(file.st_mode) && !stat(watched, &named) &&
           file.st_ino == named.st_ino && file.st_dev == named.st_dev;
}

static int leads_outside(int fd)
{
    int family;
    socklen_t size = sizeof family;
    return log_fd >= 0 && !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size) && family != AF_UNIX;
}

static ssize_t written(int fd, const struct iovec *parts, int count, off_t offset, ssize_t length)
{
    if (length > 0 && is_watched(fd))
        note('W', (fcntl(fd, F_GETFL) & O_DSYNC) != 0, parts, count, length, offset);
    else if (length > 0 && leads_outside(fd))
        note('A', 0, parts, count, length, fd);
    return length;
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset)
{
    struct iovec part = {(void *)data, size};
    return written(fd, &part, 1, offset, syscall(SYS_pwrite64, fd, data, size, offset));
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t offset)
{
    return pwrite64(fd, data, size, offset);
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t offset)
{
    return written(fd, parts, count, offset, syscall(SYS_pwritev, fd, parts, count, offset, 0));
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset)
{
    return pwritev64(fd, parts, count, offset);
}

ssize_t write(int fd, const void *data, size_t size)
{
    struct iovec part = {(void *)data, size};
    off_t offset = is_watched(fd) ? lseek(fd, 0, SEEK_CUR) : 0;
    return written(fd, &part, 1, offset, syscall(SYS_write, fd, data, size));
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    off_t offset = is_watched(fd) ? lseek(fd, 0, SEEK_CUR) : 0;
    return written(fd, parts, count, offset, syscall(SYS_writev, fd, parts, count));
}

static int synced(int fd, int result)
{
    struct stat file;
    char link[32], name[PATH_MAX];
    struct iovec part = {name, 0};
    if (!result && is_watched(fd)) {
        note('S', 1, NULL, 0, 0, 0);
    } else if (!result && log_fd >= 0 && !fstat(fd, &file) && S_ISDIR(file.st_mode)) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(link, name, sizeof name);
        part.iov_len = length > 0 ? length : 0;
        note('D', 1, &part, 1, part.iov_len, 0);
    }
    return result;
}

int fsync(int fd) { return synced(fd, syscall(SYS_fsync, fd)); }

int fdatasync(int fd) { return synced(fd, syscall(SYS_fdatasync, fd)); }

int ftruncate64(int fd, off64_t size)
{
    int result = syscall(SYS_ftruncate, fd, size);
    if (!result && is_watched(fd))
        note('T', 0, NULL, 0, 0, size);
    return result;
}

int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }

void *mmap64(void *at, size_t size, int protection, int flags, int fd, off64_t offset)
{
    if ((protection & PROT_WRITE) && (flags & MAP_SHARED) && is_watched(fd))
        note('M', 0, NULL, 0, 0, 0);
    return (void *)syscall(SYS_mmap, at, size, protection, flags, fd, offset);
}

void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    return mmap64(at, size, protection, flags, fd, offset);
}

ssize_t send(int fd, const void *data, size_t size, int flags)
{
    struct iovec part = {(void *)data, size};
    return written(fd, &part, 1, 0, syscall(SYS_sendto, fd, data, size, flags, NULL, 0));
}
