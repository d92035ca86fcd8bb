#define _GNU_SOURCE
#include "pyxis.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NODE_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* Of the job's environment, what Pyxis keeps from Enroot. */
static const char *const kept_from_enroot[] = {
	"PATH=", "LD_LIBRARY_PATH=", "LD_PRELOAD=", "SLURM_PROCID=", "SLURM_LOCALID=", "SLURM_TASK_PID=", "PMIX_RANK=",
	"PMI_FD=",
	"ENROOT_LIBRARY_PATH=", "ENROOT_SYSCONF_PATH=", "ENROOT_RUNTIME_PATH=", "ENROOT_CACHE_PATH=", "ENROOT_DATA_PATH=",
	"ENROOT_TEMP_PATH=",
};

/* --- a squashfs file ------------------------------------------------------------------------------------------- */

static int refuse(const char *image, const char *cause, const char *path)
{
	slurm_error("pyxis: child %d failed with error code: 1", getpid());
	slurm_error("pyxis: failed to create container filesystem for image: %s", image);
	slurm_error("pyxis: printing enroot log file:");
	slurm_error("pyxis:     [ERROR] %s: %s", cause, path);
	return -1;
}

/* Like readlink -f: the last part need not exist. */
static void resolve(const char *image, char path[PATH_MAX])
{
	char copy[PATH_MAX], directory[PATH_MAX];

	if (realpath(image, path) != NULL)
		return;
	snprintf(copy, sizeof(copy), "%s", image);
	if (realpath(dirname(copy), directory) == NULL) {
		snprintf(path, PATH_MAX, "%s", image);
		return;
	}
	snprintf(copy, sizeof(copy), "%s", image);
	if (snprintf(path, PATH_MAX, "%s/%s", strcmp(directory, "/") == 0 ? "" : directory, basename(copy)) >= PATH_MAX)
		path[PATH_MAX - 1] = '\0';
}

static int open_squashfs(const char *image)
{
	char path[PATH_MAX], magic[4] = "";
	struct stat st;
	int fd;

	resolve(image, path);
	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return refuse(image, "No such file or directory", path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && read(fd, magic, sizeof(magic)) == sizeof(magic) && memcmp(magic, "hsqs", 4) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return refuse(image, "Invalid image format", path);
}

/* --- a registry image ------------------------------------------------------------------------------------------ */

static bool is_kept_from_enroot(const char *entry)
{
	for (size_t i = 0; i < sizeof(kept_from_enroot) / sizeof(*kept_from_enroot); i++)
		if (strncmp(entry, kept_from_enroot[i], strlen(kept_from_enroot[i])) == 0)
			return true;
	return false;
}

static void exec_enroot(char **job_env, int log, const char *scratch, const char *output, const char *uri)
{
	clearenv();
	for (char **entry = job_env; *entry != NULL; entry++)
		if (!is_kept_from_enroot(*entry))
			putenv(*entry);
	setenv("PATH", NODE_PATH, 1);
	setenv("ENROOT_TEMP_PATH", scratch, 1);
	dup2(open("/dev/null", O_RDONLY), 0);
	dup2(log, 1);
	dup2(log, 2);
	close_range(3, ~0U, 0);
	execlp("enroot", "enroot", "import", "--output", output, uri, (char *)NULL);
	dprintf(2, "enroot: %s\n", strerror(errno));
	_exit(127);
}

static void print_log(int log)
{
	FILE *file = fdopen(log, "r");
	char *line = NULL;
	size_t size = 0;

	slurm_error("pyxis: printing enroot log file:");
	if (file == NULL)
		return;
	rewind(file);
	while (getline(&line, &size, file) >= 0)
		slurm_error("pyxis:     %.*s", (int)strcspn(line, "\n"), line);
	free(line);
	fclose(file);
}

static int run_import(spank_t sp, const char *image, const char *scratch, const char *output)
{
	char **job_env = NULL;
	char uri[PATH_MAX];
	int log = memfd_create("enroot-log", MFD_CLOEXEC);
	int status = 0;
	pid_t pid;

	if (log < 0 || spank_get_item(sp, S_JOB_ENV, &job_env) != ESPANK_SUCCESS)
		return -1;
	snprintf(uri, sizeof(uri), "%s%s", strncmp(image, "docker://", 9) == 0 ? "" : "docker://", image);
	pid = fork();
	if (pid == 0)
		exec_enroot(job_env, log, scratch, output, uri);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0) {
		close(log);
		return 0;
	}
	slurm_error("pyxis: child %d failed with error code: %d", pid, WIFEXITED(status) ? WEXITSTATUS(status) : 1);
	slurm_error("pyxis: failed to import docker image: %s", image);
	print_log(log);
	return -1;
}

/* Nobody but the step sees the file, and it goes with the step: it is unlinked as soon as it is open. */
static int open_imported(spank_t sp, const struct plan *plan, const char *image)
{
	char scratch[PATH_MAX - 64], output[PATH_MAX];
	int fd;

	snprintf(scratch, sizeof(scratch), "%s/" SCRATCH, plan->directory);
	snprintf(output, sizeof(output), "%s/%u.%u.squashfs", scratch, plan->job.id, plan->job.step);
	if (plan->job.total_tasks <= 1)
		slurm_spank_log("pyxis: importing docker image: %s", image);
	if (run_import(sp, image, scratch, output) < 0)
		return -1;
	slurm_spank_log("pyxis: imported docker image: %s", image);
	fd = open(output, O_RDONLY | O_CLOEXEC);
	unlink(output);
	return fd;
}

/* The open image or -1; what is wrong has been printed then. To be called as the user, in the job's directory. */
int image_open(spank_t sp, const struct plan *plan)
{
	const char *image = plan->options->image;

	if (*image == '/' || *image == '.')
		return open_squashfs(image);
	return open_imported(sp, plan, image);
}
