#define _GNU_SOURCE
#include "pyxis.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#pragma GCC visibility push(default)
SPANK_PLUGIN(pyxis, 1)
#pragma GCC visibility pop

#define HOOK __attribute__((visibility("default"))) int

struct settings settings = { .runtime_path = "/run/pyxis", .sbatch_support = true };
struct job job;

static struct {
	bool enabled;
	int chosen; /* what came of choosing the container */
	struct shared *shared;
} step;

/* --- settings ------------------------------------------------------------------------------------------------- */

static bool is_yes(const char *value)
{
	return strcmp(value, "1") == 0 || strcmp(value, "true") == 0 || strcmp(value, "yes") == 0 || strcmp(value, "y") == 0;
}

static const char *value_of(const char *argument, const char *name)
{
	size_t n = strlen(name);

	return strncmp(argument, name, n) == 0 && argument[n] == '=' ? argument + n + 1 : NULL;
}

static int read_setting(const char *argument)
{
	const char *value;

	if ((value = value_of(argument, "runtime_path")) != NULL)
		settings.runtime_path = strdup(value);
	else if ((value = value_of(argument, "execute_entrypoint")) != NULL)
		settings.execute_entrypoint = is_yes(value);
	else if ((value = value_of(argument, "container_scope")) != NULL)
		settings.job_scope = strcmp(value, "job") == 0;
	else if ((value = value_of(argument, "sbatch_support")) != NULL)
		settings.sbatch_support = is_yes(value);
	else
		slurm_error("pyxis: unknown configuration option: %s", argument);
	return value == NULL ? -1 : 0;
}

static int read_settings(int argc, char **argv)
{
	for (int i = 0; i < argc; i++)
		if (read_setting(argv[i]) < 0) {
			slurm_error("pyxis: failed to parse configuration");
			return -1;
		}
	return 0;
}

/* --- before there are tasks ------------------------------------------------------------------------------------ */

static int load_groups(spank_t sp)
{
	gid_t *groups = NULL;
	int n = 0;

	if (spank_get_item(sp, S_JOB_SUPPLEMENTARY_GIDS, &groups, &n) != ESPANK_SUCCESS)
		return -1;
	job.n_groups = n > MAX_GROUPS ? MAX_GROUPS : n;
	memcpy(job.groups, groups, (size_t)job.n_groups * sizeof(*groups));
	return 0;
}

static int load_job(spank_t sp)
{
	if (spank_get_item(sp, S_JOB_UID, &job.uid) != ESPANK_SUCCESS ||
	    spank_get_item(sp, S_JOB_GID, &job.gid) != ESPANK_SUCCESS ||
	    spank_get_item(sp, S_JOB_ID, &job.id) != ESPANK_SUCCESS ||
	    spank_get_item(sp, S_JOB_STEPID, &job.step) != ESPANK_SUCCESS ||
	    spank_get_item(sp, S_JOB_LOCAL_TASK_COUNT, &job.local_tasks) != ESPANK_SUCCESS ||
	    spank_get_item(sp, S_JOB_TOTAL_TASK_COUNT, &job.total_tasks) != ESPANK_SUCCESS || load_groups(sp) < 0) {
		slurm_error("pyxis: couldn't get the job's description");
		return -1;
	}
	spank_getenv(sp, "PWD", job.cwd, sizeof(job.cwd));
	return 0;
}

/* Imported images go through a folder of the user's own. */
static int make_runtime_folder(void)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%u", settings.runtime_path, job.uid);
	mkdir(settings.runtime_path, 0755);
	if (mkdir(path, 0700) < 0 && errno == EEXIST)
		return 0;
	if (chown(path, job.uid, job.gid) == 0)
		return 0;
	slurm_error("pyxis: couldn't mkdir %s: %s", path, strerror(errno));
	return -1;
}

HOOK slurm_spank_init(spank_t sp, int argc, char **argv)
{
	spank_context_t context = spank_context();

	if (read_settings(argc, argv) < 0)
		return -1;
	if (context == S_CTX_ALLOCATOR && !settings.sbatch_support)
		return 0;
	if (context != S_CTX_LOCAL && context != S_CTX_ALLOCATOR && context != S_CTX_REMOTE)
		return 0;
	return options_register(sp);
}

HOOK slurm_spank_init_post_opt(spank_t sp, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	options_from_environment(sp);
	if (!options_ask_for_container() || spank_context() != S_CTX_REMOTE)
		return 0;
	if (load_job(sp) < 0)
		return -1;
	if (job.step == SLURM_EXTERN_CONT)
		return 0;
	step.enabled = true;
	return make_runtime_folder();
}

/* A failure here would end as success for srun: it is kept until there is a task to fail. */
HOOK slurm_spank_user_init(spank_t sp, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (!step.enabled)
		return 0;
	step.shared = container_share();
	if (step.shared == NULL || spank_get_item(sp, S_JOB_ENV, &job.environment) != ESPANK_SUCCESS)
		step.chosen = -1;
	else
		step.chosen = container_choose(sp);
	return 0;
}

/* --- in a task, as the user ---------------------------------------------------------------------------------------- */

HOOK slurm_spank_task_init(spank_t sp, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (!step.enabled)
		return 0;
	if (step.chosen < 0 || spank_get_item(sp, S_JOB_ENV, &job.environment) != ESPANK_SUCCESS)
		return -1;
	if (container_start_once(step.shared) < 0)
		return -1;
	return container_enter(sp, step.shared);
}

/* --- after the tasks ------------------------------------------------------------------------------------------- */

/* srun hears of the task's end after this: by then the container is gone. */
HOOK slurm_spank_task_exit(spank_t sp, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (!step.enabled || step.shared == NULL)
		return 0;
	if (spank_get_item(sp, S_JOB_ENV, &job.environment) != ESPANK_SUCCESS)
		job.environment = NULL;
	return container_finish(step.shared);
}

HOOK slurm_spank_job_epilog(spank_t sp, int argc, char **argv)
{
	if (read_settings(argc, argv) < 0)
		return -1;
	if (!settings.job_scope)
		return 0;
	if (spank_get_item(sp, S_JOB_UID, &job.uid) != ESPANK_SUCCESS ||
	    spank_get_item(sp, S_JOB_GID, &job.gid) != ESPANK_SUCCESS ||
	    spank_get_item(sp, S_JOB_ID, &job.id) != ESPANK_SUCCESS) {
		slurm_error("pyxis: epilog: couldn't get the job's description");
		return -1;
	}
	return container_remove_all();
}
