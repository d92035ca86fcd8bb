/*
 * Only root may mount an image, and a task is the user when it learns what went wrong. So a step has one root process,
 * the mounter, started before its first task. It owns a mount namespace that all tasks of the step on this node enter;
 * the first of them sends it the open image and mount sources, opened with the user's rights, and it builds the tree
 * there. It ends, and frees everything, when the last holder of its socket is gone: also when slurmstepd was killed.
 */
#define _GNU_SOURCE
#include "pyxis.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_FDS 200 /* the kernel passes at most 253 in a message */

void outcome_fail(struct outcome *outcome, enum stage stage, const char *format, ...)
{
	va_list args;

	outcome->failed = stage;
	va_start(args, format);
	vsnprintf(outcome->text, sizeof(outcome->text), format, args);
	va_end(args);
}

static ssize_t send_fds(int socket, void *data, size_t size, const int *fds, size_t n_fds)
{
	union {
		char buffer[CMSG_SPACE(MAX_FDS * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { .iov_base = data, .iov_len = size };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (n_fds > 0) {
		message.msg_control = control.buffer;
		message.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		struct cmsghdr *header = CMSG_FIRSTHDR(&message);

		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(header), fds, n_fds * sizeof(int));
	}
	return sendmsg(socket, &message, MSG_NOSIGNAL);
}

/* `fds` holds MAX_FDS; how many came is put in `n_fds`. */
static ssize_t receive_fds(int socket, void *data, size_t size, int *fds, size_t *n_fds)
{
	union {
		char buffer[CMSG_SPACE(MAX_FDS * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { .iov_base = data, .iov_len = size };
	struct msghdr message = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.buffer, .msg_controllen = sizeof(control.buffer),
	};
	struct cmsghdr *header;
	ssize_t n;

	do {
		n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	*n_fds = 0;
	header = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;
	if (header != NULL && header->cmsg_type == SCM_RIGHTS) {
		*n_fds = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(fds, CMSG_DATA(header), *n_fds * sizeof(int));
	}
	return n;
}

/* Nothing of slurmstepd may live on in here: its sockets would keep srun and slurmd waiting. */
static void become_daemon(int socket)
{
	sigset_t none;
	int null;

	setsid();
	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_NAME, "pyxis-mounter");
	null = open("/dev/null", O_RDWR);
	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	if (dup2(socket, 3) == 3)
		close_range(4, ~0U, 0);
}

static int make_namespace(const struct plan *plan)
{
	char scratch[PATH_MAX];

	if (mkdir(plan->directory, 0755) < 0 && errno != EEXIST)
		return -1;
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return -1;
	if (mount("tmpfs", plan->directory, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755") < 0)
		return -1;
	snprintf(scratch, sizeof(scratch), "%s/" SCRATCH, plan->directory);
	if (mkdir(scratch, 0700) < 0 || chown(scratch, plan->job.uid, plan->job.gid) < 0)
		return -1;
	return open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
}

/* The descriptors themselves travel beside it: the image first, then those of the mounts that have a source. */
struct request {
	size_t n_fds;
	bool present[MAX_FDS];
};

static void answer_request(int socket, const struct plan *plan, const struct request *request, const int *received,
			   size_t n_received)
{
	struct outcome outcome = { .failed = STAGE_OK };
	int fds[MAX_FDS];
	size_t next = 0;

	for (size_t i = 0; i < request->n_fds && i < MAX_FDS; i++)
		fds[i] = request->present[i] && next < n_received ? received[next++] : -1;
	rootfs_build(plan, fds[0], fds + 1, &outcome);
	for (size_t i = 0; i < n_received; i++)
		close(received[i]);
	send_fds(socket, &outcome, sizeof(outcome), NULL, 0);
}

static void serve(int socket, const struct plan *plan)
{
	struct request request;
	int fds[MAX_FDS];
	size_t n_fds;
	int namespace;
	int failure = 0;

	become_daemon(socket);
	socket = 3;
	namespace = make_namespace(plan);
	if (namespace < 0)
		failure = errno;
	send_fds(socket, &failure, sizeof(failure), &namespace, namespace < 0 ? 0 : 1);
	close(namespace);
	while (failure == 0 && receive_fds(socket, &request, sizeof(request), fds, &n_fds) == sizeof(request))
		answer_request(socket, plan, &request, fds, n_fds);
	/* The tasks are gone: this unmounts the image and frees its loop device before the step is reported as ended. */
	umount2(plan->directory, MNT_DETACH);
	_exit(0);
}

/* Twice forked: slurmstepd waits for any child of its own, and must find none but its tasks. */
static void spawn(int socket, const struct plan *plan)
{
	pid_t pid = fork();

	if (pid == 0) {
		if (fork() == 0)
			serve(socket, plan);
		_exit(0);
	}
	if (pid > 0)
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
}

int mounter_start(struct mounter *mounter, const struct plan *plan)
{
	int pair[2], fds[MAX_FDS];
	int failure = ECHILD;
	size_t n_fds = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	spawn(pair[1], plan);
	close(pair[1]);
	mounter->socket = pair[0];
	if (receive_fds(pair[0], &failure, sizeof(failure), fds, &n_fds) != sizeof(failure) || n_fds != 1) {
		close(pair[0]);
		mounter->socket = -1;
		errno = failure;
		return -1;
	}
	mounter->namespace = fds[0];
	return 0;
}

/* Joining a mount namespace moves the process to its root; Slurm counts on the job's working directory. */
int mounter_enter(const struct mounter *mounter)
{
	char cwd[PATH_MAX];
	bool known = getcwd(cwd, sizeof(cwd)) != NULL;

	if (setns(mounter->namespace, CLONE_NEWNS) < 0)
		return -1;
	if (known && chdir(cwd) < 0)
		return chdir("/");
	return 0;
}

int mounter_build(const struct mounter *mounter, const int *fds, size_t n_fds, struct outcome *outcome)
{
	struct request request = { .n_fds = n_fds };
	int sent[MAX_FDS], none[MAX_FDS];
	size_t n_sent = 0, n_none;

	if (n_fds > MAX_FDS) {
		errno = E2BIG;
		return -1;
	}
	for (size_t i = 0; i < n_fds; i++) {
		request.present[i] = fds[i] >= 0;
		if (fds[i] >= 0)
			sent[n_sent++] = fds[i];
	}
	if (send_fds(mounter->socket, &request, sizeof(request), sent, n_sent) < 0)
		return -1;
	if (receive_fds(mounter->socket, outcome, sizeof(*outcome), none, &n_none) != sizeof(*outcome)) {
		errno = EPIPE;
		return -1;
	}
	return 0;
}

void mounter_stop(struct mounter *mounter)
{
	char byte;

	if (mounter->socket < 0)
		return;
	close(mounter->namespace);
	shutdown(mounter->socket, SHUT_WR);
	while (recv(mounter->socket, &byte, 1, 0) < 0 && errno == EINTR)
		;
	close(mounter->socket);
	mounter->socket = mounter->namespace = -1;
}
