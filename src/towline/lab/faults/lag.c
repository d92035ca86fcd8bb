/*
 * Files that other hosts make on the shared disk appear late here, by a number of milliseconds. What is made here carries
 * a mark (an extended attribute) and is there at once. Links are never late, and neither is what is added to a file.
 */
#define SHIM "lag"
#include "shim.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <time.h>

#define MARK "user.lab-made-here"
#define ASKED (STATX_BASIC_STATS | STATX_BTIME)
#define TICK 20 /* milliseconds within which the kernel's two stamps of one write lie */

static int64_t milliseconds(const struct statx_timestamp *t)
{
	return t->tv_sec * 1000 + t->tv_nsec / 1000000;
}

/* When a name came up: with the file, or with a later change that wrote nothing, such as being renamed. */
static int64_t appeared(const struct statx *st)
{
	int64_t changed = milliseconds(&st->stx_ctime), written = milliseconds(&st->stx_mtime);

	return changed - written > TICK ? changed : milliseconds(&st->stx_btime);
}

static bool is_marked(int at, const char *path)
{
	int fd = (int)syscall(SYS_openat, at, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	bool marked = fd >= 0 && fgetxattr(fd, MARK, NULL, 0) >= 0;

	if (fd >= 0)
		close(fd);
	return marked;
}

static bool find(int at, const char *path, struct statx *st)
{
	return syscall(SYS_statx, at, path, AT_SYMLINK_NOFOLLOW, ASKED, st) == 0 &&
	       makedev(st->stx_dev_major, st->stx_dev_minor) == disk;
}

static bool is_hidden(int at, const char *path)
{
	int before = errno;
	struct timespec now;
	struct statx st;
	int64_t came;
	bool hidden = false;

	if (strength() && path != NULL && *path != '\0' && find(at, path, &st) && !S_ISLNK(st.stx_mode)) {
		clock_gettime(CLOCK_REALTIME, &now);
		came = appeared(&st);
		hidden = came >= since() && now.tv_sec * 1000 + now.tv_nsec / 1000000 - came < strength() &&
			 !is_marked(at, path);
	}
	errno = hidden ? ENOENT : before;
	return hidden;
}

static bool is_late(int at, const char *name)
{
	return strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && is_hidden(at, name);
}

static bool is_there(int at, const char *path)
{
	struct statx st;

	return !strength() || syscall(SYS_statx, at, path, AT_SYMLINK_NOFOLLOW, ASKED, &st) == 0;
}

static void mark_open(int fd)
{
	int before = errno;

	fsetxattr(fd, MARK, "", 0, 0);
	errno = before;
}

static void mark(int at, const char *path)
{
	int before = errno;
	int fd = (int)syscall(SYS_openat, at, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);

	if (fd >= 0) {
		mark_open(fd);
		close(fd);
	}
	errno = before;
}

#define OPEN(name, at, parameters, ...)                                                                                 \
	SHOWN int name parameters                                                                                       \
	{                                                                                                               \
		bool fresh;                                                                                             \
		int fd;                                                                                                 \
		va_list more;                                                                                           \
		va_start(more, flags);                                                                                  \
		mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;                                 \
		va_end(more);                                                                                           \
		if (!(flags & O_CREAT))                                                                                 \
			return is_hidden(at, path) ? -1 : REAL(name)(__VA_ARGS__, flags, 0);                            \
		fresh = !is_there(at, path);                                                                            \
		fd = REAL(name)(__VA_ARGS__, flags, mode);                                                              \
		if (fd >= 0 && fresh)                                                                                   \
			mark_open(fd);                                                                                  \
		return fd;                                                                                              \
	}

#define FOPEN(name)                                                                                                     \
	SHOWN FILE *name(const char *path, const char *mode)                                                            \
	{                                                                                                               \
		bool fresh = *mode != 'r' && !is_there(AT_FDCWD, path);                                                 \
		FILE *file;                                                                                             \
		if (*mode == 'r' && is_hidden(AT_FDCWD, path))                                                          \
			return NULL;                                                                                    \
		file = REAL(name)(path, mode);                                                                          \
		if (file != NULL && fresh)                                                                              \
			mark_open(fileno(file));                                                                        \
		return file;                                                                                            \
	}

/* A function that looks at a name; `bad` is how it says that there is none. */
#define LOOKS(type, bad, name, at, path, parameters, ...)                                                               \
	SHOWN type name parameters                                                                                      \
	{                                                                                                               \
		return is_hidden(at, path) ? bad : REAL(name)(__VA_ARGS__);                                             \
	}

/* A function that makes a name; when there is one already, it is another host's or has been marked. */
#define MAKES(name, at, path, parameters, ...)                                                                          \
	SHOWN int name parameters                                                                                       \
	{                                                                                                               \
		int result = REAL(name)(__VA_ARGS__);                                                                   \
		if (result == 0 && strength())                                                                          \
			mark(at, path);                                                                                 \
		return result;                                                                                          \
	}

#define LISTS(type, name)                                                                                               \
	SHOWN struct type *name(DIR *folder)                                                                            \
	{                                                                                                               \
		struct type *entry;                                                                                     \
		int before = errno;                                                                                     \
		while ((entry = REAL(name)(folder)) != NULL && is_late(dirfd(folder), entry->d_name))                   \
			errno = before; /* by which the caller tells the end from a failure */                          \
		return entry;                                                                                           \
	}

OPEN(open, AT_FDCWD, (const char *path, int flags, ...), path)
OPEN(open64, AT_FDCWD, (const char *path, int flags, ...), path)
OPEN(openat, at, (int at, const char *path, int flags, ...), at, path)
OPEN(openat64, at, (int at, const char *path, int flags, ...), at, path)
FOPEN(fopen)
FOPEN(fopen64)
MAKES(mkdir, AT_FDCWD, path, (const char *path, mode_t mode), path, mode)
MAKES(mkdirat, at, path, (int at, const char *path, mode_t mode), at, path, mode)
LOOKS(int, -1, stat, AT_FDCWD, path, (const char *path, struct stat *st), path, st)
LOOKS(int, -1, stat64, AT_FDCWD, path, (const char *path, struct stat64 *st), path, st)
LOOKS(int, -1, lstat, AT_FDCWD, path, (const char *path, struct stat *st), path, st)
LOOKS(int, -1, lstat64, AT_FDCWD, path, (const char *path, struct stat64 *st), path, st)
LOOKS(int, -1, fstatat, at, path, (int at, const char *path, struct stat *st, int flags), at, path, st, flags)
LOOKS(int, -1, fstatat64, at, path, (int at, const char *path, struct stat64 *st, int flags), at, path, st, flags)
LOOKS(int, -1, statx, at, path, (int at, const char *path, int flags, unsigned int mask, struct statx *st), at, path, flags,
      mask, st)
LOOKS(int, -1, access, AT_FDCWD, path, (const char *path, int mode), path, mode)
LOOKS(int, -1, faccessat, at, path, (int at, const char *path, int mode, int flags), at, path, mode, flags)
LOOKS(int, -1, euidaccess, AT_FDCWD, path, (const char *path, int mode), path, mode)
LOOKS(int, -1, chdir, AT_FDCWD, path, (const char *path), path)
LOOKS(DIR *, NULL, opendir, AT_FDCWD, path, (const char *path), path)
LISTS(dirent, readdir)
LISTS(dirent64, readdir64)
