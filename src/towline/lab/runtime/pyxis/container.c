#define _GNU_SOURCE
#include "pyxis.h"
#include "../enroot/enter/pretend.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct shared {
	pthread_mutex_t mutex;
	bool tried;
	pid_t pid;    /* the process this step started, -1 when it could not */
	pid_t ns_pid; /* the process whose namespaces the tasks join: of another step when the container runs already */
	atomic_uint entered;
	atomic_uint ended;
};

static struct {
	char *name;
	char *squashfs; /* of an imported image, until there is a container */
	bool exists;
	bool temporary;
	pid_t running;
} container = { .running = -1 };

struct shared *container_share(void)
{
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_t attributes;

	if (shared == MAP_FAILED)
		return NULL;
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&shared->mutex, &attributes);
	pthread_mutexattr_destroy(&attributes);
	shared->pid = shared->ns_pid = -1;
	return shared;
}

/* --- which container -------------------------------------------------------------------------------------------- */

/* The pid in it, 0 when none runs, -1 when there is no such container; -2 when Enroot did not say. */
static pid_t find_container(const char *name)
{
	FILE *list = enroot_read((char *const[]){ "enroot", "list", "-f", NULL });
	char *line = NULL, *rest, *word;
	size_t size = 0;
	pid_t pid = -1;

	if (list == NULL)
		return -2;
	while (pid < 0 && getline(&line, &size, list) >= 0) {
		word = strtok_r(line, " \n", &rest);
		if (word == NULL || strcmp(word, name) != 0)
			continue;
		word = strtok_r(NULL, " \n", &rest);
		pid = word == NULL ? 0 : (pid_t)strtoul(word, NULL, 10);
	}
	free(line);
	fclose(list);
	return pid;
}

static int choose_named(void)
{
	pid_t pid;
	int rc = settings.job_scope ? asprintf(&container.name, "pyxis_%u_%s", job.id, options.name)
				    : asprintf(&container.name, "pyxis_%s", options.name);

	pid = rc < 0 ? -2 : find_container(container.name);
	if (pid == -2) {
		slurm_error("pyxis: couldn't get list of containers");
		return -1;
	}
	if (strcmp(options.name_flag, "create") == 0 && pid >= 0) {
		slurm_error("pyxis: error: \"create\" flag was passed to --container-name but the container already exists");
		return -1;
	}
	if (strcmp(options.name_flag, "exec") == 0 && pid <= 0) {
		slurm_error("pyxis: error: \"exec\" flag was passed to --container-name but the container is not running");
		return -1;
	}
	if (pid < 0 && options.image == NULL) {
		slurm_error("pyxis: error: a container with name \"%s\" does not exist, and --container-image is not set",
			    container.name);
		return -1;
	}
	container.exists = pid >= 0;
	if (pid > 0 && strcmp(options.name_flag, "no_exec") != 0)
		container.running = pid;
	return 0;
}

static int choose_unnamed(void)
{
	container.temporary = true;
	if (settings.job_scope)
		return asprintf(&container.name, "pyxis_%u_%u.%u", job.id, job.id, job.step);
	return asprintf(&container.name, "pyxis_%u.%u", job.id, job.step);
}

/* The batch script lies in slurmd's spool directory, which no image has. */
static int mount_script(spank_t sp)
{
	char **argv = NULL;
	int argc = 0;

	if (spank_get_item(sp, S_JOB_ARGV, &argc, &argv) != ESPANK_SUCCESS || argc == 0) {
		slurm_error("pyxis: couldn't get sbatch script");
		return -1;
	}
	return options_add_mount(argv[0], argv[0], "x-create=file,bind,ro,nosuid,nodev,private");
}

int container_choose(spank_t sp)
{
	if (job.step == SLURM_BATCH_SCRIPT && mount_script(sp) < 0)
		return -1;
	if ((options.name != NULL ? choose_named() : choose_unnamed()) < 0)
		return -1;
	if (container.running > 0 && options.n_mounts > 0) {
		slurm_spank_log("pyxis: ignoring --container-mounts when attaching to a running container");
		options.n_mounts = 0;
	}
	return 0;
}

/* --- making and starting it --------------------------------------------------------------------------------------- */

static bool is_file(const char *image)
{
	return *image == '/' || *image == '.';
}

static int create_from(const char *squashfs)
{
	if (enroot_run((char *const[]){ "enroot", "create", "--name", container.name, (char *)squashfs, NULL }) == 0)
		return 0;
	slurm_error("pyxis: failed to create container filesystem for image: %s", options.image);
	enroot_print_log(true);
	return -1;
}

static int import_to(const char *squashfs)
{
	const char *scheme = strncmp(options.image, "docker://", 9) == 0 ? "" : "docker://";
	char *uri;
	int rc;

	if (asprintf(&uri, "%s%s", scheme, options.image) < 0)
		return -1;
	/* A batch script counts as no task at all. */
	if (job.total_tasks <= 1)
		slurm_spank_log("pyxis: importing docker image: %s", options.image);
	rc = enroot_run((char *const[]){ "enroot", "import", "--output", (char *)squashfs, uri, NULL });
	free(uri);
	if (rc == 0) {
		slurm_spank_log("pyxis: imported docker image: %s", options.image);
		return 0;
	}
	slurm_error("pyxis: failed to import docker image: %s", options.image);
	enroot_print_log(true);
	return -1;
}

static int create(void)
{
	char squashfs[PATH_MAX];
	int rc;

	if (is_file(options.image))
		return create_from(options.image);
	snprintf(squashfs, sizeof(squashfs), "%s/%u/%u.%u.squashfs", settings.runtime_path, job.uid, job.id, job.step);
	rc = import_to(squashfs);
	if (rc == 0)
		rc = create_from(squashfs);
	unlink(squashfs);
	return rc;
}

/* 0 when another task may be waiting for what this one could not do, which is then told by all. */
static int start_as_first(struct shared *shared)
{
	if (!container.exists && create() < 0)
		return -1;
	shared->pid = start_container(container.name);
	shared->ns_pid = container.running > 0 ? container.running : shared->pid;
	return 0;
}

int container_start_once(struct shared *shared)
{
	int rc = 0;

	if (pthread_mutex_lock(&shared->mutex) == EOWNERDEAD) {
		pthread_mutex_consistent(&shared->mutex);
		slurm_error("pyxis: a previous task terminated unexpectedly during container setup");
		shared->tried = true;
		rc = -1;
	}
	if (!shared->tried) {
		shared->tried = true;
		rc = start_as_first(shared);
	}
	if (rc == 0 && shared->pid < 0) {
		slurm_error("pyxis: container was not started successfully by another task");
		rc = -1;
	}
	pthread_mutex_unlock(&shared->mutex);
	return rc;
}

/* --- joining it --------------------------------------------------------------------------------------------------- */

static int open_namespace(pid_t pid, const char *name)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		slurm_error("pyxis: unable to open %s namespace file: %s", name, strerror(errno));
	return fd;
}

static int join(int fd, int kind, const char *name)
{
	if (setns(fd, kind) == 0)
		return 0;
	slurm_error("pyxis: couldn't join %s namespace: %s", name, strerror(errno));
	return -1;
}

static int go_to_workdir(const char *of_container)
{
	if (options.workdir != NULL && chdir(options.workdir) < 0) {
		slurm_error("pyxis: couldn't chdir to %s: %s", options.workdir, strerror(errno));
		return -1;
	}
	if (options.workdir == NULL && chdir(of_container) < 0) {
		slurm_error("pyxis: couldn't chdir to container cwd %s: %s", of_container, strerror(errno));
		return -1;
	}
	return 0;
}

/* The first process may end once every task has what it needs of it. */
static int release(struct shared *shared)
{
	if (atomic_fetch_add(&shared->entered, 1) + 1 < job.local_tasks)
		return 0;
	if (kill(shared->pid, SIGCONT) == 0)
		return 0;
	slurm_error("pyxis: couldn't send SIGCONT to container process: %s", strerror(errno));
	return -1;
}

int container_enter(spank_t sp, struct shared *shared)
{
	int user = open_namespace(shared->ns_pid, "user"), mounts = open_namespace(shared->ns_pid, "mnt");
	char path[64], workdir[PATH_MAX];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/cwd", shared->pid);
	n = readlink(path, workdir, sizeof(workdir) - 1);
	if (user < 0 || mounts < 0 || n < 0) {
		slurm_error("pyxis: couldn't get container namespaces");
		return -1;
	}
	workdir[n] = '\0';
	if (start_merge_environment(sp, shared->pid) < 0)
		return -1;
	if (join(user, CLONE_NEWUSER, "user") < 0 || join(mounts, CLONE_NEWNS, "mount") < 0 || go_to_workdir(workdir) < 0)
		return -1;
	if (pretend_ownership() < 0) {
		slurm_error("pyxis: seccomp filter failed: %s", strerror(errno));
		return -1;
	}
	return release(shared);
}

/* --- afterwards --------------------------------------------------------------------------------------------------- */

static int save(void)
{
	char *path;
	int rc;

	if (*options.save == '/')
		rc = asprintf(&path, "%s", options.save);
	else
		rc = asprintf(&path, "%s/%s", job.cwd, options.save);
	if (rc < 0)
		return -1;
	rc = enroot_run((char *const[]){ "enroot", "export", "-f", "-o", path, container.name, NULL });
	free(path);
	if (rc == 0) {
		slurm_spank_log("pyxis: exported container %s to %s", container.name, options.save);
		return 0;
	}
	enroot_print_log(true);
	slurm_error("pyxis: failed to export container %s to %s", container.name, options.save);
	return -1;
}

int container_finish(struct shared *shared)
{
	int rc = 0;

	if (atomic_fetch_add(&shared->ended, 1) + 1 < job.local_tasks)
		return 0;
	if (options.save != NULL && shared->entered == job.local_tasks)
		rc = save();
	if (container.temporary)
		enroot_run((char *const[]){ "enroot", "remove", "-f", container.name, NULL });
	return rc;
}

/* Those of the job, named or left behind by a step that was killed. */
int container_remove_all(void)
{
	FILE *list = enroot_read((char *const[]){ "enroot", "list", NULL });
	char *name = NULL, prefix[32];
	size_t size = 0;
	int rc = 0;

	if (list == NULL)
		return -1;
	snprintf(prefix, sizeof(prefix), "pyxis_%u_", job.id);
	while (getline(&name, &size, list) >= 0) {
		name[strcspn(name, "\n")] = '\0';
		if (strncmp(name, prefix, strlen(prefix)) == 0)
			rc |= enroot_run((char *const[]){ "enroot", "remove", "-f", name, NULL });
	}
	free(name);
	fclose(list);
	return rc;
}
