/*
 * Images are anybody's work: a link in one may point anywhere. Every path inside the tree is resolved by the kernel
 * with the tree as its root, and used through the descriptor that came of it.
 */
#define _GNU_SOURCE
#include "enter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_inside(int root, const char *path)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT };

	return (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
}

/* Without permissions, which tells a mount point from what the image has. */
static int make(int parent, const char *name, enum place place, bool last)
{
	if (!last)
		return mkdirat(parent, name, 0755);
	if (place == PLACE_DIRECTORY)
		return mkdirat(parent, name, 0);
	return mknodat(parent, name, S_IFREG, 0);
}

/* Opens `prefix`, whose last part is `name`, making it below `parent` when it is not there. */
static int step_into(int root, int parent, const char *prefix, const char *name, enum place missing, bool last)
{
	int fd = open_inside(root, prefix);

	if (fd >= 0 || errno != ENOENT || missing == PLACE_NONE)
		return fd;
	if (make(parent, name, missing, last) < 0 && errno != EEXIST)
		return -1;
	return open_inside(root, prefix);
}

int place_open(int root, const char *target, enum place missing)
{
	char prefix[PATH_MAX + 1] = "", copy[PATH_MAX];
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
		next = step_into(root, here, prefix, name, missing, last);
		close(here);
		here = next;
	}
	return here;
}
