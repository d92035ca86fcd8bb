#define _GNU_SOURCE
#include "pyxis.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

/* The first line of a name or number counts, so these go before what the image has. */
static int prepend(int root, const char *target, const char *lines, const struct job *job)
{
	char *old = place_read(root, target);
	char *text = NULL;
	int rc = -1;

	if (old != NULL && asprintf(&text, "%s%s", lines, old) >= 0)
		rc = place_write(root, target, text, job);
	free(text);
	free(old);
	return rc;
}

int identity_write(int root, const struct job *job, bool remap_root)
{
	char users[PATH_MAX + 512], groups[512];
	int home;

	snprintf(users, sizeof(users),
		 "root:x:0:0:root:/root:/bin/sh\n%s:x:%u:%u::%s:/bin/sh\nnobody:x:65534:65534:nobody:/:/sbin/nologin\n",
		 job->user, job->uid, job->gid, job->home);
	snprintf(groups, sizeof(groups), "root:x:0:\n%s:x:%u:\nnogroup:x:65534:\n", job->group, job->gid);
	if (prepend(root, "/etc/passwd", users, job) < 0 || prepend(root, "/etc/group", groups, job) < 0)
		return -1;
	home = place_open(root, remap_root ? "/root" : job->home, PLACE_DIRECTORY, job);
	if (home >= 0)
		close(home);
	return home < 0 ? -1 : 0;
}

static int write_map(const char *path, const char *text, int size)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool written = fd >= 0 && write(fd, text, (size_t)size) == size;

	if (fd >= 0)
		close(fd);
	return written ? 0 : -1;
}

/* A user namespace with one user in it: the right to chroot, and no right outside. */
int identity_assume(const struct job *job, bool remap_root)
{
	unsigned uid = remap_root ? 0 : job->uid, gid = remap_root ? 0 : job->gid;
	char map[64];

	/* After its change of user the process's own /proc entries belong to root until it is dumpable again. */
	prctl(PR_SET_DUMPABLE, 1);
	if (unshare(CLONE_NEWUSER) < 0 || write_map("/proc/self/setgroups", "deny", 4) < 0)
		return -1;
	if (write_map("/proc/self/uid_map", map, snprintf(map, sizeof(map), "%u %u 1", uid, job->uid)) < 0)
		return -1;
	return write_map("/proc/self/gid_map", map, snprintf(map, sizeof(map), "%u %u 1", gid, job->gid));
}
