/* The executable of one file: this program, and behind it the compressed folder of the service. The first start unpacks
 * the folder; every start becomes the program in it (docs/adr/0210).
 *
 * tools/executable.py compiles it, statically: for the folder itself, where `svc` starts what is beside it, without
 * definitions, and for the executable with
 *   VERSION   of the service, such as "0.3.0"
 *   CONTENT   the first digits of the SHA-256 of the archive
 *   PACKED    bytes of the archive, a .tar.gz, at the end of this file
 *   UNPACKED  bytes of its files
 *
 * The folder is CACHE/VERSION-CONTENT, made under another name and renamed when it is whole. CACHE is the first of
 * SVC_UNPACK_DIR (alone, if set), CACHE_DIRECTORY (of systemd), XDG_DATA_HOME/svc, HOME/.local/share/svc and /var/cache/svc
 * that has the folder or can take it. A process holds a shared lock on its folder, so that what nobody runs is known.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#define FOLDER VERSION "-" CONTENT
#define UNFINISHED ".unpacking-"
#define BLOCK 512
#define UNUSED_S (30 * 24 * 60 * 60)
#define CANDIDATES 5

static char self[PATH_MAX];

static void refuse(const char *form, ...)
{
    va_list values;
    va_start(values, form);
    fputs("svc: ", stderr);
    vfprintf(stderr, form, values);
    fputc('\n', stderr);
    va_end(values);
    exit(1);
}

static void join(char *path, const char *folder, const char *name)
{
    if (snprintf(path, PATH_MAX, "%s/%s", folder, name) >= PATH_MAX)
        refuse("the path of a folder is too long: %s", folder);
}

static void copy(char *path, const char *from, size_t length)
{
    if (length >= PATH_MAX)
        refuse("the path of a folder is too long: %s", from);
    memcpy(path, from, length);
    path[length] = '\0';
}

/* Becomes the interpreter of a folder, which runs the service; returns where that cannot be.
 *
 * Isolated, so that it takes modules of nowhere else; and its libraries come first, since a small system does not have
 * zlib. */
static void become(const char *folder, int count, char **given)
{
    char whole[PATH_MAX], program[PATH_MAX], libraries[PATH_MAX];
    char **arguments = calloc(count + 6, sizeof *arguments);
    if (!arguments)
        refuse("no memory");
    if (!realpath(folder, whole))
        return;
    join(program, whole, "bin/svc");
    join(libraries, whole, "lib");
    char **at = arguments;
    *at++ = program;
    *at++ = "-ISm";
    *at++ = "svc";
    for (int each = 1; each < count; each++)
        *at++ = given[each];
    setenv("LD_LIBRARY_PATH", libraries, 1);
    execv(program, arguments);
    free(arguments);
}

#ifdef PACKED
static char refusals[CANDIDATES * (PATH_MAX + 200)];

/* Notes why a folder cannot be used, for the message if none can. */
static bool unusable(const char *cache, const char *why)
{
    size_t length = strlen(refusals);
    const char *before = strstr(refusals, cache);
    if (before && before[strlen(cache)] == ':')
        return false;
    snprintf(refusals + length, sizeof refusals - length, "\n  %s: %s", cache, why);
    return false;
}

/* Whether nobody but this user and the superuser can change what the folder holds. */
static bool is_ours(const struct stat *folder)
{
    return S_ISDIR(folder->st_mode) && (folder->st_uid == geteuid() || folder->st_uid == 0) && !(folder->st_mode & 022);
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void)status, (void)kind, (void)walk;
    return remove(path);
}

static void remove_folder(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* The archive as a stream. */
static struct {
    int file;
    z_stream stream;
    bool ended;
    unsigned char packed[1 << 16];
} archive;

static void open_archive(void)
{
    struct stat status;
    archive.file = open(self, O_RDONLY | O_CLOEXEC);
    if (archive.file < 0 || fstat(archive.file, &status))
        refuse("cannot read %s: %s", self, strerror(errno));
    if (status.st_size < PACKED || lseek(archive.file, status.st_size - PACKED, SEEK_SET) < 0)
        refuse("%s is incomplete: download it again", self);
    memset(&archive.stream, 0, sizeof archive.stream);
    if (inflateInit2(&archive.stream, 15 + 16) != Z_OK)
        refuse("no memory to unpack with");
    archive.ended = false;
}

/* Reads what the archive holds next, at most so many bytes: fewer at its end. Its checksum is compared there. */
static size_t read_archive(void *into, size_t wanted)
{
    archive.stream.next_out = into;
    archive.stream.avail_out = wanted;
    while (archive.stream.avail_out && !archive.ended) {
        if (!archive.stream.avail_in) {
            ssize_t got = read(archive.file, archive.packed, sizeof archive.packed);
            if (got <= 0)
                refuse("%s is incomplete or damaged: download it again", self);
            archive.stream.next_in = archive.packed;
            archive.stream.avail_in = got;
        }
        int result = inflate(&archive.stream, Z_NO_FLUSH);
        if (result == Z_STREAM_END)
            archive.ended = true;
        else if (result != Z_OK)
            refuse("%s is damaged: download it again", self);
    }
    return wanted - archive.stream.avail_out;
}

static void close_archive(void)
{
    unsigned char rest[BLOCK];
    while (read_archive(rest, sizeof rest) == sizeof rest)
        ;
    inflateEnd(&archive.stream);
    close(archive.file);
}

/* Writes one file of the archive. Returns false with errno set. */
static bool write_file(int folder, const char *name, mode_t mode, unsigned long long size)
{
    static char content[1 << 16];
    int file = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (file < 0)
        return false;
    for (unsigned long long left = size; left;) {
        size_t part = left < sizeof content ? left : sizeof content;
        if (read_archive(content, part) != part)
            refuse("%s is damaged: download it again", self);
        for (size_t written = 0; written < part;) {
            ssize_t now = write(file, content + written, part - written);
            if (now < 0) {
                int error = errno;
                close(file);
                errno = error;
                return false;
            }
            written += now;
        }
        left -= part;
    }
    char padding[BLOCK];
    if (size % BLOCK)
        read_archive(padding, BLOCK - size % BLOCK);
    return close(file) == 0;
}

/* Writes the entries of the archive, in the format ustar: folders and files. Returns false with errno set. */
static bool write_files(int folder)
{
    struct {
        char name[100], mode[8], owner[8], group[8], size[12], time[12], sum[8], kind, link[100], magic[8];
        char owner_name[32], group_name[32], major[8], minor[8], prefix[155], padding[12];
    } entry;
    _Static_assert(sizeof entry == BLOCK, "the header of an entry is a block");
    open_archive();
    while (read_archive(&entry, BLOCK) == BLOCK && entry.name[0]) {
        char name[sizeof entry.prefix + sizeof entry.name + 2];
        if (entry.prefix[0])
            snprintf(name, sizeof name, "%.155s/%.100s", entry.prefix, entry.name);
        else
            snprintf(name, sizeof name, "%.100s", entry.name);
        mode_t mode = strtoul(entry.mode, NULL, 8);
        if (entry.kind == '5' ? mkdirat(folder, name, mode) != 0
                              : !write_file(folder, name, mode, strtoull(entry.size, NULL, 8))) {
            int error = errno;
            close_archive();
            errno = error;
            return false;
        }
    }
    close_archive();
    return true;
}

/* Removes what an unpacking left that ended early, and other versions that nobody runs and that were not started for
 * 30 days. Call it with the lock of the cache held. */
static void remove_unused(const char *cache)
{
    DIR *listing = opendir(cache);
    if (!listing)
        return;
    for (struct dirent *each; (each = readdir(listing));) {
        char path[PATH_MAX], program[PATH_MAX];
        struct stat status;
        join(path, cache, each->d_name);
        if (!strncmp(each->d_name, UNFINISHED, strlen(UNFINISHED))) {
            remove_folder(path);
            continue;
        }
        join(program, path, "bin/svc");
        if (each->d_name[0] == '.' || !strcmp(each->d_name, FOLDER) || access(program, X_OK) || stat(path, &status)
            || time(NULL) - status.st_mtime < UNUSED_S)
            continue;
        int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (folder >= 0 && !flock(folder, LOCK_EX | LOCK_NB))
            remove_folder(path);
        if (folder >= 0)
            close(folder);
    }
    closedir(listing);
}

/* Makes a folder with its parents. Returns false with errno set. */
static bool make_folder(const char *path)
{
    char part[PATH_MAX];
    copy(part, path, strlen(path));
    for (char *at = part + 1; *at; at++) {
        if (*at != '/')
            continue;
        *at = '\0';
        if (mkdir(part, 0755) && errno != EEXIST && access(part, X_OK))
            return false;
        *at = '/';
    }
    return !mkdir(part, 0755) || errno == EEXIST;
}

/* Unpacks into a cache. Returns whether it could; else it has noted why. */
static bool unpack(const char *cache, const char *target)
{
    struct stat status;
    struct statvfs volume;
    char unfinished[PATH_MAX], program[PATH_MAX], name[64];
    mode_t former = umask(022);
    bool made = make_folder(cache) && !stat(cache, &status);
    int error = errno;
    umask(former);
    if (!made)
        return unusable(cache, strerror(error));
    if (!is_ours(&status))
        return unusable(cache, "other users may change it");
    if (access(cache, W_OK))
        return unusable(cache, strerror(errno));
    if (statvfs(cache, &volume))
        return unusable(cache, strerror(errno));
    if (volume.f_flag & ST_NOEXEC)
        return unusable(cache, "it is mounted noexec");
    if ((unsigned long long)volume.f_bavail * volume.f_frsize < UNPACKED + UNPACKED / 8) {
        char why[100];
        snprintf(why, sizeof why, "it has no room for %llu MB", UNPACKED / 1000000 + 1);
        return unusable(cache, why);
    }
    int lock = open(cache, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (lock < 0)
        return unusable(cache, strerror(errno));
    flock(lock, LOCK_EX); /* another start unpacks: wait. Where there are no locks, the rename decides. */
    join(program, target, "bin/svc");
    if (!access(program, F_OK)) {
        close(lock);
        return true;
    }
    remove_folder(target); /* what somebody left of it */
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "svc: unpacking version %s into %s, once\n", VERSION, cache);
    remove_unused(cache);
    snprintf(name, sizeof name, UNFINISHED "%ld", (long)getpid());
    join(unfinished, cache, name);
    former = umask(022);
    int folder = mkdir(unfinished, 0755) ? -1 : open(unfinished, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    made = folder >= 0 && write_files(folder) && !syncfs(folder);
    error = errno;
    umask(former);
    if (folder >= 0)
        close(folder);
    if (made && rename(unfinished, target)) {
        error = errno;
        made = error == EEXIST || error == ENOTEMPTY;
    }
    remove_folder(unfinished);
    close(lock);
    return made || unusable(cache, strerror(error));
}

/* Runs the program of an unpacked folder; returns where there is none. */
static void run(const char *target, int count, char **arguments)
{
    struct stat status;
    int folder = open(target, O_RDONLY | O_DIRECTORY); /* stays open in the program: the lock says that it runs */
    if (folder < 0)
        return;
    if (fstat(folder, &status) || !is_ours(&status)) {
        unusable(target, "other users may change it");
        close(folder);
        return;
    }
    flock(folder, LOCK_SH | LOCK_NB);
    futimens(folder, NULL);
    become(target, count, arguments);
    if (errno != ENOENT)
        unusable(target, errno == EACCES ? "it may not be executed: mounted noexec, or not readable" : strerror(errno));
    close(folder);
}

/* The folders to look in and to unpack into, best first. Returns how many. */
static int caches(char found[CANDIDATES][PATH_MAX])
{
    int count = 0;
    const char *value = getenv("SVC_UNPACK_DIR");
    if (value && *value) {
        copy(found[0], value, strlen(value));
        return 1;
    }
    if ((value = getenv("CACHE_DIRECTORY")) && *value)
        copy(found[count++], value, strcspn(value, ":"));
    if ((value = getenv("XDG_DATA_HOME")) && *value == '/')
        join(found[count++], value, "svc");
    else if ((value = getenv("HOME")) && *value == '/')
        join(found[count++], value, ".local/share/svc");
    strcpy(found[count++], "/var/cache/svc");
    return count;
}

static void start(int count, char **arguments)
{
    static char found[CANDIDATES][PATH_MAX];
    char target[PATH_MAX];
    int folders = caches(found);
    for (int each = 0; each < folders; each++) {
        join(target, found[each], FOLDER);
        run(target, count, arguments);
    }
    for (int each = 0; each < folders; each++) {
        join(target, found[each], FOLDER);
        if (unpack(found[each], target))
            run(target, count, arguments);
    }
    refuse("found no folder to unpack version %s into, once:%s\nSet SVC_UNPACK_DIR to a folder that may be written and "
           "may execute programs.", VERSION, refusals);
}
#else
/* The folder is where this program is. */
static void start(int count, char **arguments)
{
    char folder[PATH_MAX];
    copy(folder, self, strrchr(self, '/') - self);
    become(folder, count, arguments);
    refuse("%s/bin/svc cannot be executed: %s", folder, strerror(errno));
}
#endif

/* Connects what was closed of descriptors 0 to 2 with /dev/null: the folder, which stays open, would take its place, and
 * the interpreter refuses to read a folder. */
static void fill_standard_streams(void)
{
    int opened;
    while ((opened = open("/dev/null", O_RDWR)) >= 0 && opened <= STDERR_FILENO)
        ;
    if (opened >= 0)
        close(opened);
}

int main(int count, char **arguments)
{
    fill_standard_streams();
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0)
        refuse("/proc is not mounted: %s", strerror(errno));
    self[length] = '\0';
    start(count, arguments);
}
