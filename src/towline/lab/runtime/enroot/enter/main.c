/*
 * enroot-enter start [--root] [--rw] WORK ROOTFS [COMMAND...]    a container's first process
 * enroot-enter exec WORK PID COMMAND...                          one more in a container that runs
 *
 * WORK is a folder with the files `environment` and `fstab`; it is removed before the command runs.
 */
#define _GNU_SOURCE
#include "enter.h"
#include "pretend.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <libgen.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define COMMAND_SCRIPT "/etc/rc" /* of an image that came from a registry: its WORKDIR, ENTRYPOINT and CMD */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	(void)st;
	(void)type;
	(void)walk;
	return remove(path);
}

static const char *work;

/* Also when something failed; a path means something else once the root has changed. */
static void remove_work(void)
{
	if (work != NULL)
		nftw(work, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	work = NULL;
}

static void begin_work(const char *path)
{
	work = path;
	atexit(remove_work);
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		err(EXIT_FAILURE, "failed to create user namespace");
	close(fd);
}

/* One user in it, who may mount there and has no right outside. */
static void make_namespaces(bool remapped)
{
	unsigned uid = geteuid(), gid = getegid();
	char map[64];

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		err(EXIT_FAILURE, "failed to create user namespace");
	write_file("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "%u %u 1", remapped ? 0 : uid, uid);
	write_file("/proc/self/uid_map", map);
	snprintf(map, sizeof(map), "%u %u 1", remapped ? 0 : gid, gid);
	write_file("/proc/self/gid_map", map);
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		err(EXIT_FAILURE, "failed to set mount propagation");
}

static void make_tree(const char *root, const char *fstab, bool writable)
{
	if (mount(root, root, NULL, MS_BIND, NULL) < 0 || mounts_restrict(root, MS_NOSUID | MS_NODEV) < 0)
		err(EXIT_FAILURE, "failed to mount: %s at %s", root, root);
	mounts_make(root, fstab);
	/* Last, since places for mounts are made in the tree. */
	if (!writable && mounts_restrict(root, MS_RDONLY | MS_NOSUID | MS_NODEV) < 0)
		err(EXIT_FAILURE, "failed to mount: none at %s", root);
}

static void switch_root(const char *root)
{
	if (chdir(root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		err(EXIT_FAILURE, "failed to switch root: %s", root);
}

/* By the image's command script when it has one, else as it is; a shell when there is no command. */
static void run_command(char **command, int count)
{
	const char *shell = getenv("SHELL");
	char **argv = calloc((size_t)count + 5, sizeof(*argv));
	char *copy, *name;
	int n = 0;

	if (shell == NULL || access(shell, X_OK) < 0)
		shell = "/bin/sh";
	copy = strdup(shell);
	if (argv == NULL || copy == NULL || asprintf(&name, "-%s", basename(copy)) < 0)
		err(EXIT_FAILURE, "failed to allocate memory");
	argv[n++] = name;
	if (access(COMMAND_SCRIPT, F_OK) == 0) {
		argv[n++] = COMMAND_SCRIPT;
	} else if (count > 0) {
		argv[n++] = "-c";
		argv[n++] = "exec \"$@\"";
		argv[n++] = name + 1;
	}
	memcpy(argv + n, command, (size_t)count * sizeof(*argv));
	execv(shell, argv);
	err(EXIT_FAILURE, "failed to execute: %s", shell);
}

static void give_up_privileges(void)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || pretend_ownership() < 0)
		err(EXIT_FAILURE, "failed to register seccomp filter");
}

static int start(int argc, char **argv)
{
	bool remapped = false, writable = false;
	char path[PATH_MAX];

	for (; argc > 0 && strncmp(*argv, "--", 2) == 0; argc--, argv++) {
		remapped |= strcmp(*argv, "--root") == 0;
		writable |= strcmp(*argv, "--rw") == 0;
	}
	if (argc < 2)
		return EXIT_FAILURE;
	begin_work(argv[0]);
	make_namespaces(remapped);
	/* Enroot's mounts are made by a program of that name, which is part of their messages. */
	program_invocation_short_name = "enroot-mount";
	snprintf(path, sizeof(path), "%s/fstab", argv[0]);
	make_tree(argv[1], path, writable);
	snprintf(path, sizeof(path), "%s/environment", argv[0]);
	if (variables_load(path, '\n', true) < 0)
		err(EXIT_FAILURE, "failed to load environment: %s", path);
	remove_work();
	program_invocation_short_name = "enroot-switchroot";
	switch_root(argv[1]);
	variables_login(remapped);
	if (chdir(getenv("HOME")) < 0 && chdir("/") < 0)
		err(EXIT_FAILURE, "failed to change directory: /");
	give_up_privileges();
	run_command(argv + 2, argc - 2);
	return EXIT_FAILURE;
}

static int open_of(const char *pid, const char *what, int flags)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%s/%s", pid, what);
	fd = open(path, flags | O_CLOEXEC);
	if (fd < 0)
		err(EXIT_FAILURE, "failed to open: %s", path);
	return fd;
}

static int exec_in(int argc, char **argv)
{
	int user, mounts, cwd;
	char path[PATH_MAX];

	if (argc < 3)
		return EXIT_FAILURE;
	begin_work(argv[0]);
	user = open_of(argv[1], "ns/user", O_RDONLY);
	mounts = open_of(argv[1], "ns/mnt", O_RDONLY);
	cwd = open_of(argv[1], "cwd", O_PATH);
	snprintf(path, sizeof(path), "/proc/%s/environ", argv[1]);
	if (variables_load(path, '\0', true) < 0)
		err(EXIT_FAILURE, "failed to load environment: %s", path);
	snprintf(path, sizeof(path), "%s/environment", argv[0]);
	variables_load(path, '\n', false);
	remove_work();
	if (setns(user, CLONE_NEWUSER) < 0)
		err(EXIT_FAILURE, "failed to join user namespace");
	if (setns(mounts, CLONE_NEWNS) < 0)
		err(EXIT_FAILURE, "failed to join mount namespace");
	if (fchdir(cwd) < 0)
		err(EXIT_FAILURE, "failed to change directory: /proc/%s/cwd", argv[1]);
	give_up_privileges();
	execvp(argv[2], argv + 2);
	err(EXIT_FAILURE, "failed to execute: %s", argv[2]);
}

int main(int argc, char **argv)
{
	program_invocation_short_name = "enroot-nsenter";
	if (argc > 1 && strcmp(argv[1], "start") == 0)
		return start(argc - 2, argv + 2);
	if (argc > 1 && strcmp(argv[1], "exec") == 0)
		return exec_in(argc - 2, argv + 2);
	errx(EXIT_FAILURE, "invalid argument: %s", argc > 1 ? argv[1] : "");
}
