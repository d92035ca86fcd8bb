/*
 * Images are anybody's work: a link in one may point anywhere. Every path inside the tree is resolved by the kernel
 * with the tree as its root, and used through the descriptor that came of it.
 */
#define _GNU_SOURCE
#include "pyxis.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_inside(int root, const char *path, uint64_t flags, uint64_t mode)
{
	struct open_how how = { .flags = flags | O_CLOEXEC, .mode = mode, .resolve = RESOLVE_IN_ROOT };

	return (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
}

static bool same_file_system(int a, int b)
{
	struct stat sa, sb;

	return fstat(a, &sa) == 0 && fstat(b, &sb) == 0 && sa.st_dev == sb.st_dev;
}

static int make(int parent, const char *name, bool directory)
{
	int fd;

	if (directory)
		return mkdirat(parent, name, 0755);
	fd = openat(parent, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
	if (fd < 0)
		return -1;
	close(fd);
	return 0;
}

/* The tree is the user's; in a directory mounted from the node only what the user may do is done. */
static int make_as_user(int root, int parent, const char *name, bool directory, const struct job *job)
{
	int rc;

	if (same_file_system(root, parent)) {
		rc = make(parent, name, directory);
		if (rc == 0)
			rc = fchownat(parent, name, job->uid, job->gid, AT_SYMLINK_NOFOLLOW);
		return rc;
	}
	setfsgid(job->gid);
	setfsuid(job->uid);
	rc = make(parent, name, directory);
	setfsuid(0);
	setfsgid(0);
	return rc;
}

/* Opens `prefix` (whose last part is `name`), making it below `parent` when it is not there. */
static int step_into(int root, int parent, const char *prefix, const char *name, bool directory, const struct job *job)
{
	int fd = open_inside(root, prefix, O_PATH, 0);

	if (fd >= 0 || errno != ENOENT)
		return fd;
	if (make_as_user(root, parent, name, directory, job) < 0)
		return -1;
	return open_inside(root, prefix, O_PATH, 0);
}

int place_open(int root, const char *target, enum place place, const struct job *job)
{
	char prefix[PATH_MAX] = "", copy[PATH_MAX];
	char *rest = copy, *name;
	int here = dup(root);

	if (strlen(target) >= sizeof(copy)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(copy, target);
	while (here >= 0 && (name = strsep(&rest, "/")) != NULL) {
		bool last = rest == NULL || rest[strspn(rest, "/")] == '\0';
		int next;

		if (*name == '\0' || strcmp(name, ".") == 0)
			continue;
		strcat(strcat(prefix, "/"), name);
		next = step_into(root, here, prefix, name, !last || place != PLACE_FILE, job);
		close(here);
		here = next;
	}
	return here;
}

int place_write(int root, const char *target, const char *text, const struct job *job)
{
	size_t size = strlen(text);
	int place = place_open(root, target, PLACE_FILE, job);
	int fd, rc;

	if (place < 0)
		return -1;
	close(place);
	fd = open_inside(root, target, O_WRONLY | O_TRUNC, 0);
	if (fd < 0)
		return -1;
	rc = write(fd, text, size) == (ssize_t)size ? fchown(fd, job->uid, job->gid) : -1;
	close(fd);
	return rc;
}

/* The whole of a small file, or an empty string. The caller frees it. */
char *place_read(int root, const char *target)
{
	enum { LIMIT = 1 << 20 };
	char *text = calloc(1, LIMIT + 1);
	size_t size = 0;
	ssize_t n;
	int fd = open_inside(root, target, O_RDONLY | O_NONBLOCK, 0);

	while (text != NULL && fd >= 0 && size < LIMIT && (n = read(fd, text + size, LIMIT - size)) > 0)
		size += (size_t)n;
	if (fd >= 0)
		close(fd);
	return text;
}
