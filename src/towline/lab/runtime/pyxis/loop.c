/*
 * The image as a file system: its file on a loop device, mounted as squashfs and made the user's.
 */
#define _GNU_SOURCE
#include "pyxis.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <linux/major.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_TRIES 200

static int open_loop(int number)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/dev/loop%d", number);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT && mknod(path, S_IFBLK | 0600, makedev(LOOP_MAJOR, number)) == 0)
		fd = open(path, O_RDWR | O_CLOEXEC);
	return fd;
}

/* Another step may take the number between the question and its use: then the next one is asked for. */
static int attach_loop(int image, int *number)
{
	struct loop_config config = { .fd = (unsigned)image, .info.lo_flags = LO_FLAGS_READ_ONLY | LO_FLAGS_AUTOCLEAR };
	int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	int fd = -1;

	for (int tries = 0; control >= 0 && tries < MAX_TRIES; tries++) {
		*number = ioctl(control, LOOP_CTL_GET_FREE);
		fd = *number < 0 ? -1 : open_loop(*number);
		if (fd < 0 || ioctl(fd, LOOP_CONFIGURE, &config) == 0)
			break;
		close(fd);
		fd = -1;
		if (errno != EBUSY)
			break;
	}
	if (control >= 0)
		close(control);
	return fd;
}

/* The device frees itself when the file system on it is unmounted. */
static int mount_squashfs(int image, const char *target)
{
	char device[32];
	int number, fd, rc, saved;

	fd = attach_loop(image, &number);
	if (fd < 0)
		return -1;
	snprintf(device, sizeof(device), "/dev/loop%d", number);
	rc = mount(device, target, "squashfs", MS_RDONLY | MS_NOSUID | MS_NODEV, NULL);
	saved = errno;
	close(fd);
	errno = saved;
	return rc;
}

static int write_id(pid_t pid, const char *file, unsigned id)
{
	char path[64], map[64];
	int size = snprintf(map, sizeof(map), "0 %u 1", id);
	int fd, rc;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	rc = write(fd, map, (size_t)size) == size ? 0 : -1;
	close(fd);
	return rc;
}

/* A child that has a user namespace and lives until it is killed; `pid` is not positive when there is none. */
static pid_t hold_user_namespace(void)
{
	int ready[2];
	char byte;
	pid_t pid;

	if (pipe2(ready, O_CLOEXEC) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (unshare(CLONE_NEWUSER) < 0 || write(ready[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	/* The end of the pipe without a byte means that the child failed; the map then cannot be written. */
	if (pid > 0 && read(ready[0], &byte, 1) < 0)
		kill(pid, SIGKILL);
	close(ready[0]);
	return pid;
}

/* A user namespace that knows root as the job's user; only its descriptor is wanted. */
static int open_user_map(const struct job *job)
{
	pid_t pid = hold_user_namespace();
	char path[64];
	int fd = -1;

	if (pid <= 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	if (write_id(pid, "uid_map", job->uid) == 0 && write_id(pid, "gid_map", job->gid) == 0)
		fd = open(path, O_RDONLY | O_CLOEXEC);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return fd;
}

/*
 * Enroot unpacks an image as the user, so all of it belongs to the user. The same comes of mapping the image's root to
 * the user on the mount. Older kernels cannot for squashfs and show the files as root's: a writable container can then
 * add files at its top but not change the image's.
 */
static void give_to_user(const char *path, const struct job *job)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP };
	int tree = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	int users = open_user_map(job);

	attr.userns_fd = (uint64_t)users;
	if (tree >= 0 && users >= 0 && mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) == 0)
		move_mount(tree, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH);
	if (tree >= 0)
		close(tree);
	if (users >= 0)
		close(users);
}

int image_mount(int image, const char *target, const struct job *job)
{
	if (mount_squashfs(image, target) < 0)
		return -1;
	give_to_user(target, job);
	return 0;
}
