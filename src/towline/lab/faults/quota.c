/* The user has used up the quota on the shared disk: no new file, folder or link, and not a byte more in those there are. */
#define SHIM "quota"
#include "shim.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

static bool exceeded(bool on_disk)
{
	if (!on_disk)
		return false;
	errno = EDQUOT;
	return true;
}

static bool open_on_disk(int fd)
{
	struct stat st;

	return strength() && syscall(SYS_fstat, fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_dev == disk;
}

/* Whether a new name would lie on the disk. One that is there already costs nothing. */
static bool new_on_disk(int at, const char *path)
{
	char folder[4096];
	struct stat st;
	char *slash;

	if (!strength() || strlen(path) >= sizeof(folder))
		return false;
	if (syscall(SYS_newfstatat, at, path, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return false;
	strcpy(folder, path);
	while ((slash = strrchr(folder, '/')) != NULL && slash[1] == '\0' && slash != folder)
		*slash = '\0';
	if (slash == NULL)
		strcpy(folder, ".");
	else
		slash[slash == folder ? 1 : 0] = '\0';
	return syscall(SYS_newfstatat, at, folder, &st, 0) == 0 && st.st_dev == disk;
}

#define REFUSE(condition) do { if (exceeded(condition)) return -1; } while (0)

#define OPEN(name)                                                                                                      \
	SHOWN int name(const char *path, int flags, ...)                                                                \
	{                                                                                                               \
		va_list more;                                                                                           \
		va_start(more, flags);                                                                                  \
		mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;                                 \
		va_end(more);                                                                                           \
		REFUSE((flags & O_CREAT) && new_on_disk(AT_FDCWD, path));                                               \
		return REAL(name)(path, flags, mode);                                                                   \
	}

#define OPENAT(name)                                                                                                    \
	SHOWN int name(int at, const char *path, int flags, ...)                                                        \
	{                                                                                                               \
		va_list more;                                                                                           \
		va_start(more, flags);                                                                                  \
		mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;                                 \
		va_end(more);                                                                                           \
		REFUSE((flags & O_CREAT) && new_on_disk(at, path));                                                     \
		return REAL(name)(at, path, flags, mode);                                                               \
	}

#define FOPEN(name)                                                                                                     \
	SHOWN FILE *name(const char *path, const char *mode)                                                            \
	{                                                                                                               \
		if (*mode != 'r' && exceeded(new_on_disk(AT_FDCWD, path)))                                              \
			return NULL;                                                                                    \
		return REAL(name)(path, mode);                                                                          \
	}

/* A function with a descriptor that is written to. */
#define WRITES(type, name, fd, parameters, ...)                                                                         \
	SHOWN type name parameters                                                                                      \
	{                                                                                                               \
		REFUSE(open_on_disk(fd));                                                                               \
		return REAL(name)(__VA_ARGS__);                                                                         \
	}

/* A function that makes a name. */
#define MAKES(name, at, path, parameters, ...)                                                                          \
	SHOWN int name parameters                                                                                       \
	{                                                                                                               \
		REFUSE(new_on_disk(at, path));                                                                          \
		return REAL(name)(__VA_ARGS__);                                                                         \
	}

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
FOPEN(fopen)
FOPEN(fopen64)
MAKES(creat, AT_FDCWD, path, (const char *path, mode_t mode), path, mode)
MAKES(creat64, AT_FDCWD, path, (const char *path, mode_t mode), path, mode)
MAKES(mkdir, AT_FDCWD, path, (const char *path, mode_t mode), path, mode)
MAKES(mkdirat, at, path, (int at, const char *path, mode_t mode), at, path, mode)
MAKES(symlink, AT_FDCWD, path, (const char *to, const char *path), to, path)
MAKES(symlinkat, at, path, (const char *to, int at, const char *path), to, at, path)
MAKES(mkfifo, AT_FDCWD, path, (const char *path, mode_t mode), path, mode)
WRITES(ssize_t, write, fd, (int fd, const void *bytes, size_t n), fd, bytes, n)
WRITES(ssize_t, pwrite, fd, (int fd, const void *bytes, size_t n, off_t at), fd, bytes, n, at)
WRITES(ssize_t, pwrite64, fd, (int fd, const void *bytes, size_t n, off64_t at), fd, bytes, n, at)
WRITES(ssize_t, writev, fd, (int fd, const struct iovec *parts, int n), fd, parts, n)
WRITES(ssize_t, pwritev, fd, (int fd, const struct iovec *parts, int n, off_t at), fd, parts, n, at)
WRITES(ssize_t, sendfile, out, (int out, int in, off_t *at, size_t n), out, in, at, n)
WRITES(ssize_t, sendfile64, out, (int out, int in, off64_t *at, size_t n), out, in, at, n)
WRITES(ssize_t, copy_file_range, out, (int in, off64_t *from, int out, off64_t *to, size_t n, unsigned int flags), in, from,
       out, to, n, flags)
WRITES(int, fallocate, fd, (int fd, int mode, off_t at, off_t n), fd, mode, at, n)
WRITES(int, fallocate64, fd, (int fd, int mode, off64_t at, off64_t n), fd, mode, at, n)
