#define _GNU_SOURCE
#include "pyxis.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define NODE_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* Of the job's environment, what Pyxis keeps from Enroot. */
static const char *const kept_from_enroot[] = {
	"PATH=", "LD_LIBRARY_PATH=", "LD_PRELOAD=", "SLURM_PROCID=", "SLURM_LOCALID=", "SLURM_TASK_PID=", "PMIX_RANK=",
	"PMI_FD=",
	"ENROOT_LIBRARY_PATH=", "ENROOT_SYSCONF_PATH=", "ENROOT_RUNTIME_PATH=", "ENROOT_CACHE_PATH=", "ENROOT_DATA_PATH=",
	"ENROOT_TEMP_PATH=", "ENROOT_ALLOW_HTTP=",
};

static int log_fd = -1;

static bool is_kept_from_enroot(const char *entry)
{
	for (size_t i = 0; i < sizeof(kept_from_enroot) / sizeof(*kept_from_enroot); i++)
		if (strncmp(entry, kept_from_enroot[i], strlen(kept_from_enroot[i])) == 0)
			return true;
	return false;
}

static void set_switch(const char *name, int value)
{
	if (value != -1)
		setenv(name, value ? "y" : "n", 1);
}

static void make_environment(void)
{
	clearenv();
	for (char **entry = job.environment; entry != NULL && *entry != NULL; entry++)
		if (!is_kept_from_enroot(*entry))
			putenv(*entry);
	setenv("PATH", NODE_PATH, 1);
	set_switch("ENROOT_MOUNT_HOME", options.mount_home);
	set_switch("ENROOT_REMAP_ROOT", options.remap_root);
	set_switch("ENROOT_ROOTFS_WRITABLE", options.writable);
}

/* slurmstepd may not be killed for memory; what it starts may. */
static void allow_oom_kill(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, "0", 1) < 0)
		slurm_debug("pyxis: couldn't reset oom_score_adj");
	close(fd);
}

static void become_user(void)
{
	if (geteuid() == 0 && setgroups((size_t)job.n_groups, job.groups) < 0)
		_exit(EXIT_FAILURE);
	if (setregid(job.gid, job.gid) < 0 || setreuid(job.uid, job.uid) < 0)
		_exit(EXIT_FAILURE);
}

static void exec_enroot(char *const argv[])
{
	int null = open("/dev/null", O_RDWR);
	int log = fcntl(log_fd, F_DUPFD, 3);

	if (dup2(null, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0)
		_exit(EXIT_FAILURE);
	close_range(3, ~0U, 0);
	allow_oom_kill();
	become_user();
	make_environment();
	execvp("enroot", argv);
	dprintf(2, "enroot: %s\n", strerror(errno));
	_exit(EXIT_FAILURE);
}

pid_t enroot_spawn(char *const argv[])
{
	pid_t pid;

	if (log_fd >= 0)
		close(log_fd);
	log_fd = memfd_create("enroot-log", MFD_CLOEXEC);
	if (log_fd < 0)
		return -1;
	pid = fork();
	if (pid == 0)
		exec_enroot(argv);
	return pid;
}

int enroot_run(char *const argv[])
{
	pid_t pid = enroot_spawn(argv);
	int status = 0;

	if (pid < 0)
		return -1;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	if (WIFSIGNALED(status))
		slurm_error("pyxis: child %d terminated with signal %d", pid, WTERMSIG(status));
	else if (WEXITSTATUS(status) != 0)
		slurm_error("pyxis: child %d failed with error code: %d", pid, WEXITSTATUS(status));
	return status == 0 ? 0 : -1;
}

static FILE *open_log(void)
{
	FILE *file = log_fd < 0 ? NULL : fdopen(log_fd, "r");

	log_fd = -1;
	if (file != NULL)
		rewind(file);
	return file;
}

FILE *enroot_read(char *const argv[])
{
	if (enroot_run(argv) == 0)
		return open_log();
	slurm_error("pyxis: couldn't execute enroot command");
	enroot_print_log(true);
	return NULL;
}

/* An error is framed; what an entrypoint had to say is passed on as it is. */
void enroot_print_log(bool as_error)
{
	char *line = NULL;
	size_t size = 0;
	FILE *file = open_log();

	if (file == NULL)
		return;
	if (as_error)
		slurm_error("pyxis: printing enroot log file:");
	while (getline(&line, &size, file) >= 0) {
		line[strcspn(line, "\n")] = '\0';
		if (as_error)
			slurm_error("pyxis:     %s", line);
		else
			slurm_spank_log("%s", line);
	}
	free(line);
	fclose(file);
}
