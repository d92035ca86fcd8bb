#define _GNU_SOURCE
#include "pyxis.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#pragma GCC visibility push(default)
SPANK_PLUGIN(pyxis, 1)
#pragma GCC visibility pop

#define HOOK __attribute__((visibility("default"))) int
#define RUNTIME_PATH "runtime_path="

enum container { CONTAINER_NONE, CONTAINER_READY, CONTAINER_REFUSED, CONTAINER_NOT_CREATED, CONTAINER_NOT_STARTED };

/* Between the tasks of the step on this node. */
struct shared {
	pthread_mutex_t mutex;
	enum container container;
};

static struct {
	bool enabled;
	struct plan plan;
	struct mounter mounter;
	struct shared *shared;
	int entered; /* errno of entering the mount namespace, 0 when it went well */
	uint32_t tasks_ended;
} step = { .plan.directory = "/run/pyxis", .plan.options = &options, .mounter = { -1, -1 } };

/* --- before there are tasks ------------------------------------------------------------------------------------ */

static void read_arguments(int argc, char **argv)
{
	for (int i = 0; i < argc; i++)
		if (strncmp(argv[i], RUNTIME_PATH, strlen(RUNTIME_PATH)) == 0)
			step.plan.directory = strdup(argv[i] + strlen(RUNTIME_PATH));
}

static void name_user(struct job *job)
{
	const struct passwd *user = getpwuid(job->uid);
	const struct group *group = getgrgid(job->gid);

	snprintf(job->user, sizeof(job->user), "%s", user != NULL ? user->pw_name : "user");
	snprintf(job->home, sizeof(job->home), "%s", user != NULL ? user->pw_dir : "/");
	snprintf(job->group, sizeof(job->group), "%s", group != NULL ? group->gr_name : "users");
}

static int load_job(spank_t sp, struct job *job)
{
	if (spank_get_item(sp, S_JOB_UID, &job->uid) != ESPANK_SUCCESS ||
	    spank_get_item(sp, S_JOB_GID, &job->gid) != ESPANK_SUCCESS ||
	    spank_get_item(sp, S_JOB_ID, &job->id) != ESPANK_SUCCESS ||
	    spank_get_item(sp, S_JOB_STEPID, &job->step) != ESPANK_SUCCESS ||
	    spank_get_item(sp, S_JOB_LOCAL_TASK_COUNT, &job->local_tasks) != ESPANK_SUCCESS ||
	    spank_get_item(sp, S_JOB_TOTAL_TASK_COUNT, &job->total_tasks) != ESPANK_SUCCESS) {
		slurm_error("pyxis: couldn't get the job's description");
		return -1;
	}
	name_user(job);
	return 0;
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

static struct shared *make_shared(void)
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
	return shared;
}

static int prepare_step(spank_t sp)
{
	struct job *job = &step.plan.job;

	if (load_job(sp, job) < 0)
		return -1;
	if (job->step == SLURM_EXTERN_CONT)
		return 0;
	if (options.mount_home == 1 && options_mount_home(job->home) < 0)
		return -1;
	if (job->step == SLURM_BATCH_SCRIPT && mount_script(sp) < 0)
		return -1;
	step.shared = make_shared();
	if (step.shared == NULL || mounter_start(&step.mounter, &step.plan) < 0) {
		slurm_error("pyxis: couldn't prepare a mount namespace: %s", strerror(errno));
		return -1;
	}
	step.enabled = true;
	return 0;
}

HOOK slurm_spank_init(spank_t sp, int argc, char **argv)
{
	spank_context_t context = spank_context();

	if (context != S_CTX_LOCAL && context != S_CTX_ALLOCATOR && context != S_CTX_REMOTE)
		return 0;
	read_arguments(argc, argv);
	return options_register(sp);
}

HOOK slurm_spank_init_post_opt(spank_t sp, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	options_from_environment(sp);
	if (!options_ask_for_container() || spank_context() != S_CTX_REMOTE)
		return 0;
	return prepare_step(sp);
}

/* --- in a task ------------------------------------------------------------------------------------------------- */

/* As root. What is printed here reaches nobody; slurm_spank_task_init reports it. */
HOOK slurm_spank_task_init_privileged(spank_t sp, int argc, char **argv)
{
	(void)sp;
	(void)argc;
	(void)argv;
	if (step.enabled && mounter_enter(&step.mounter) < 0)
		step.entered = errno;
	return 0;
}

static int check_name(void)
{
	const char *flag = options.name_flag;

	if (options.name != NULL && strcmp(flag, "exec") == 0) {
		slurm_error("pyxis: error: \"exec\" flag was passed to --container-name but the container is not running");
		return -1;
	}
	if (options.image == NULL) {
		slurm_error("pyxis: error: a container with name \"pyxis_%u_%s\" does not exist, and --container-image is not set",
			    step.plan.job.id, options.name);
		return -1;
	}
	if (options.save != NULL) {
		slurm_error("pyxis: --container-save is not supported by this lab");
		return -1;
	}
	return 0;
}

static void report_start_failure(const char *text)
{
	slurm_error("pyxis: container start failed with error code: 1");
	slurm_error("pyxis: printing enroot log file:");
	slurm_error("pyxis:     %s", text);
}

/* With the user's rights: what the user cannot reach is not mounted. */
static int open_sources(int *fds)
{
	char text[PATH_MAX + 256];

	for (size_t i = 0; i < options.n_mounts; i++) {
		const struct mount_entry *entry = &options.mounts[i];

		fds[i] = -1;
		if (*entry->source != '/' && *entry->source != '.')
			continue;
		fds[i] = open(entry->source, O_PATH | O_CLOEXEC);
		if (fds[i] >= 0)
			continue;
		if (*entry->source == '/' && (errno == ENOENT || errno == ENOTDIR)) {
			slurm_error("pyxis: --container-mounts: source path does not exist: %s", entry->source);
			slurm_error("pyxis: couldn't create enroot start configuration script");
		} else {
			snprintf(text, sizeof(text), "enroot-mount: failed to mount: %s at %s/root%s: %s", entry->source,
				 step.plan.directory, entry->target, strerror(errno));
			report_start_failure(text);
		}
		return -1;
	}
	return 0;
}

static enum container report(const struct outcome *outcome)
{
	switch (outcome->failed) {
	case STAGE_OK:
		return CONTAINER_READY;
	case STAGE_CREATE:
		slurm_error("pyxis: child %d failed with error code: 1", getpid());
		slurm_error("pyxis: failed to create container filesystem for image: %s", options.image);
		slurm_error("pyxis: printing enroot log file:");
		slurm_error("pyxis:     %s", outcome->text);
		return CONTAINER_NOT_CREATED;
	default:
		report_start_failure(outcome->text);
		return CONTAINER_NOT_STARTED;
	}
}

/* The descriptors stay open: this process is about to become the task, and they are closed on exec. */
static enum container start_container(spank_t sp)
{
	struct outcome outcome = { .failed = STAGE_OK };
	int *fds;

	if (check_name() < 0)
		return CONTAINER_REFUSED;
	fds = calloc(options.n_mounts + 1, sizeof(*fds));
	if (fds == NULL)
		return CONTAINER_NOT_CREATED;
	fds[0] = image_open(sp, &step.plan);
	if (fds[0] < 0)
		return CONTAINER_NOT_CREATED;
	if (open_sources(fds + 1) < 0)
		return CONTAINER_NOT_STARTED;
	if (mounter_build(&step.mounter, fds, options.n_mounts + 1, &outcome) < 0)
		outcome_fail(&outcome, STAGE_START, "pyxis-mounter: %s", strerror(errno));
	return report(&outcome);
}

static int start_once(spank_t sp)
{
	enum container container;
	bool first;

	if (pthread_mutex_lock(&step.shared->mutex) == EOWNERDEAD) {
		pthread_mutex_consistent(&step.shared->mutex);
		slurm_error("pyxis: a previous task terminated unexpectedly during container setup");
		step.shared->container = CONTAINER_NOT_STARTED;
	}
	first = step.shared->container == CONTAINER_NONE;
	if (first)
		step.shared->container = start_container(sp);
	container = step.shared->container;
	pthread_mutex_unlock(&step.shared->mutex);
	if (container == CONTAINER_READY)
		return 0;
	if (!first || container == CONTAINER_NOT_STARTED)
		slurm_error("pyxis: container was not started successfully by another task");
	return -1;
}

static int enter_container(void)
{
	char root[PATH_MAX], workdir[PATH_MAX];

	snprintf(root, sizeof(root), "%s/root", step.plan.directory);
	if (identity_assume(&step.plan.job, options.remap_root == 1) < 0) {
		slurm_error("pyxis: couldn't join user namespace: %s", strerror(errno));
		return -1;
	}
	if (chroot(root) < 0) {
		slurm_error("pyxis: couldn't join mount namespace: %s", strerror(errno));
		return -1;
	}
	environment_workdir(workdir, sizeof(workdir));
	if (options.workdir == NULL && chdir(workdir) < 0) {
		slurm_error("pyxis: couldn't chdir to container cwd %s: %s", workdir, strerror(errno));
		return -1;
	}
	if (options.workdir != NULL && chdir(options.workdir) < 0) {
		slurm_error("pyxis: couldn't chdir to %s: %s", options.workdir, strerror(errno));
		return -1;
	}
	return 0;
}

HOOK slurm_spank_task_init(spank_t sp, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (!step.enabled)
		return 0;
	if (step.entered != 0) {
		slurm_error("pyxis: couldn't join mount namespace: %s", strerror(step.entered));
		return -1;
	}
	if (start_once(sp) < 0 || enter_container() < 0)
		return -1;
	return environment_merge(sp);
}

/* --- after the tasks ------------------------------------------------------------------------------------------- */

/* srun hears of the task's end after this: by then the image is unmounted and its loop device free. */
HOOK slurm_spank_task_exit(spank_t sp, int argc, char **argv)
{
	(void)sp;
	(void)argc;
	(void)argv;
	if (!step.enabled || ++step.tasks_ended < step.plan.job.local_tasks)
		return 0;
	mounter_stop(&step.mounter);
	/* Here Pyxis removes the container's file system, and fails when there is none. */
	if (step.shared->container == CONTAINER_NOT_CREATED)
		slurm_error("pyxis: child %d failed with error code: 1", getpid());
	return 0;
}

HOOK slurm_spank_exit(spank_t sp, int argc, char **argv)
{
	(void)sp;
	(void)argc;
	(void)argv;
	mounter_stop(&step.mounter);
	return 0;
}
