/*
 * The tree: the image as a read-only squashfs on a loop device, a tmpfs over it for what the set-up and a writable
 * container change, then the mounts Enroot makes in every container, then the user's.
 */
#define _GNU_SOURCE
#include "pyxis.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define GPU_DIRECTORY "/run/lab-gpu" /* present on nodes with GPUs: what nvidia-smi reports */
#define GPU_PROGRAM "/usr/local/bin/nvidia-smi"

/* Makes directory/root, an overlay that everything else goes into, and opens it. */
static int stack_root(const struct plan *plan, int image, struct outcome *outcome)
{
	static const char *const parts[] = { "lower", "upper", "work", "root" };
	char path[4][PATH_MAX], data[3 * PATH_MAX + 64];

	for (size_t i = 0; i < 4; i++) {
		snprintf(path[i], sizeof(path[i]), "%s/%s", plan->directory, parts[i]);
		mkdir(path[i], 0755);
	}
	if (chown(path[1], plan->job.uid, plan->job.gid) < 0 || image_mount(image, path[0], &plan->job) < 0) {
		const char *cause = errno == EINVAL || errno == EIO ? "File system corruption detected" : strerror(errno);

		outcome_fail(outcome, STAGE_CREATE, "FATAL ERROR: %s", cause);
		return -1;
	}
	snprintf(data, sizeof(data), "lowerdir=%s,upperdir=%s,workdir=%s", path[0], path[1], path[2]);
	if (mount("overlay", path[3], "overlay", MS_NOSUID | MS_NODEV, data) < 0) {
		outcome_fail(outcome, STAGE_START, "enroot-mount: failed to mount: overlay at %s: %s", path[3], strerror(errno));
		return -1;
	}
	return open(path[3], O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* --- mounts --------------------------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	unsigned long set;
	unsigned long clear;
} flag_words[] = {
	{ "ro", MS_RDONLY, 0 },     { "rw", 0, MS_RDONLY },   { "nosuid", MS_NOSUID, 0 }, { "suid", 0, MS_NOSUID },
	{ "nodev", MS_NODEV, 0 },   { "dev", 0, MS_NODEV },   { "noexec", MS_NOEXEC, 0 }, { "exec", 0, MS_NOEXEC },
	{ "rbind", MS_REC, 0 },     { "bind", 0, MS_REC },
};

/* Words that mean nothing here, a misspelt one too, are passed over, as Enroot does. */
static unsigned long parse_flags(const char *text, enum place *place)
{
	unsigned long flags = MS_REC;
	char copy[256], *rest = copy, *word;

	snprintf(copy, sizeof(copy), "%s", text);
	while ((word = strsep(&rest, ",")) != NULL) {
		if (strcmp(word, "x-create=file") == 0)
			*place = PLACE_FILE;
		if (strcmp(word, "x-create=dir") == 0)
			*place = PLACE_DIRECTORY;
		for (size_t i = 0; i < sizeof(flag_words) / sizeof(*flag_words); i++)
			if (strcmp(word, flag_words[i].name) == 0)
				flags = (flags | flag_words[i].set) & ~flag_words[i].clear;
	}
	return flags;
}

static void fd_path(char path[32], int fd)
{
	snprintf(path, 32, "/proc/self/fd/%d", fd);
}

static bool is_directory(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
}

static int bind_fd(int source, int target, bool recursive)
{
	char from[32], to[32];

	fd_path(from, source);
	fd_path(to, target);
	return mount(from, to, NULL, MS_BIND | (recursive ? MS_REC : 0), NULL);
}

/* A bind mount takes its flags only from a second call, which needs the path anew: `target` was underneath so far. */
static int restrict_at(int root, const char *target, unsigned long flags, const struct job *job)
{
	char to[32];
	int rc, fd = place_open(root, target, PLACE_AUTO, job);

	if (fd < 0)
		return -1;
	fd_path(to, fd);
	rc = mount(NULL, to, NULL, MS_REMOUNT | MS_BIND | flags, NULL);
	close(fd);
	return rc;
}

static int bind_at(int root, int source, const char *target, unsigned long flags, enum place place,
		   const struct job *job)
{
	unsigned long restrictions = flags & ~(unsigned long)MS_REC;
	int fd, rc;

	if (place == PLACE_AUTO)
		place = is_directory(source) ? PLACE_DIRECTORY : PLACE_FILE;
	fd = place_open(root, target, place, job);
	if (fd < 0)
		return -1;
	rc = bind_fd(source, fd, flags & MS_REC);
	close(fd);
	return rc < 0 || restrictions == 0 ? rc : restrict_at(root, target, restrictions, job);
}

static int tmpfs_at(int root, const char *target, unsigned long flags, const struct job *job)
{
	char to[32], data[96];
	int rc, fd = place_open(root, target, PLACE_DIRECTORY, job);

	if (fd < 0)
		return -1;
	fd_path(to, fd);
	snprintf(data, sizeof(data), "mode=755,uid=%u,gid=%u", job->uid, job->gid);
	rc = mount("tmpfs", to, "tmpfs", flags | MS_NOSUID | MS_NODEV, data);
	close(fd);
	return rc;
}

static int detach_at(int root, const char *target, const struct job *job)
{
	char to[32];
	int rc, fd = place_open(root, target, PLACE_AUTO, job);

	if (fd < 0)
		return -1;
	fd_path(to, fd);
	rc = umount2(to, MNT_DETACH);
	close(fd);
	return rc;
}

static int bind_path(int root, const char *source, const char *target, unsigned long flags, const struct job *job)
{
	int rc, fd = open(source, O_PATH | O_CLOEXEC);

	if (fd < 0)
		return -1;
	rc = bind_at(root, fd, target, flags, PLACE_AUTO, job);
	close(fd);
	return rc;
}

/* What Enroot mounts into every container: its mounts.d, with a /tmp of the container's own. */
static int mount_system(int root, const struct job *job)
{
	unsigned long safe = MS_NOSUID | MS_NODEV | MS_NOEXEC;
	char name[HOST_NAME_MAX + 2] = "";

	if (bind_path(root, "/proc", "/proc", MS_REC | safe, job) < 0 ||
	    bind_path(root, "/sys", "/sys", MS_REC | MS_RDONLY | safe, job) < 0 ||
	    bind_path(root, "/dev", "/dev", MS_REC | MS_NOSUID | MS_NOEXEC, job) < 0 ||
	    tmpfs_at(root, "/tmp", 0, job) < 0 ||
	    bind_path(root, "/etc/hosts", "/etc/hosts", MS_RDONLY | safe, job) < 0)
		return -1;
	gethostname(name, sizeof(name) - 2);
	place_write(root, "/etc/hostname", strcat(name, "\n"), job);
	/* Not on every node or in every image; Enroot does without them too. */
	tmpfs_at(root, "/var/run", 0, job);
	tmpfs_at(root, "/var/lock", 0, job);
	bind_path(root, "/etc/resolv.conf", "/etc/resolv.conf", MS_RDONLY | safe, job);
	bind_path(root, "/etc/machine-id", "/etc/machine-id", MS_RDONLY | safe, job);
	return 0;
}

static void mount_gpus(int root, const struct job *job)
{
	if (bind_path(root, GPU_DIRECTORY, GPU_DIRECTORY, MS_REC | MS_RDONLY | MS_NOSUID | MS_NODEV, job) == 0)
		bind_path(root, GPU_PROGRAM, "/usr/bin/nvidia-smi", MS_RDONLY | MS_NOSUID | MS_NODEV, job);
}

static int mount_entry(int root, const struct mount_entry *entry, int source, const struct job *job)
{
	enum place place = PLACE_AUTO;
	unsigned long flags = parse_flags(entry->flags, &place);

	if (strcmp(entry->source, "tmpfs") == 0)
		return tmpfs_at(root, entry->target, flags & ~(unsigned long)MS_REC, job);
	if (strcmp(entry->source, "umount") == 0)
		return detach_at(root, entry->target, job);
	return bind_at(root, source, entry->target, flags, place, job);
}

static int mount_wanted(int root, const struct plan *plan, const int *sources, struct outcome *outcome)
{
	for (size_t i = 0; i < plan->options->n_mounts; i++) {
		const struct mount_entry *entry = &plan->options->mounts[i];

		if (mount_entry(root, entry, sources[i], &plan->job) < 0) {
			outcome_fail(outcome, STAGE_START, "enroot-mount: failed to mount: %s at %s/root%s: %s", entry->source,
				     plan->directory, entry->target, strerror(errno));
			return -1;
		}
	}
	return 0;
}

static int make_readonly(const struct plan *plan)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/root", plan->directory);
	return mount(NULL, path, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, NULL);
}

void rootfs_build(const struct plan *plan, int image, const int *sources, struct outcome *outcome)
{
	const struct job *job = &plan->job;
	int root = stack_root(plan, image, outcome);

	if (root < 0)
		return;
	umask(022);
	if (mount_system(root, job) < 0 || identity_write(root, job, plan->options->remap_root == 1) < 0)
		outcome_fail(outcome, STAGE_START, "enroot-mount: failed to set up the container: %s", strerror(errno));
	else
		mount_gpus(root, job);
	/* Read-only is Enroot's default. It comes last: mount points are made in the tree. */
	if (outcome->failed == STAGE_OK && mount_wanted(root, plan, sources, outcome) == 0 && plan->options->writable != 1 &&
	    make_readonly(plan) < 0)
		outcome_fail(outcome, STAGE_START, "enroot-mount: failed to remount: %s", strerror(errno));
	close(root);
}
