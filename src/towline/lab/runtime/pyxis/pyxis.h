/*
 * The lab's stand-in for Pyxis: a SPANK plugin that runs the tasks of a step inside a container.
 *
 *   plugin.c     the hooks Slurm calls, in the order of a task's life
 *   options.c    the --container-* options and their PYXIS_* variables
 *   container.c  which container a step uses; making, saving and removing it
 *   start.c      a container's first process, whose namespaces and environment the tasks take over
 *   enroot.c     running `enroot` as the job's user
 *
 * It works as Pyxis does: `enroot` makes containers and starts them, the plugin makes the tasks join them. Messages and exit
 * codes are those of Pyxis 0.24.
 */
#ifndef LAB_PYXIS_H
#define LAB_PYXIS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include <slurm/slurm.h>
#include <slurm/spank.h>

/* One entry of --container-mounts, or one the plugin adds. `flags` is in Enroot's spelling, comma separated. */
struct mount_entry {
	char *source;
	char *target;
	char *flags;
};

/* The options of a step. A switch is -1 as long as nobody has set it. */
struct options {
	char *image;
	char *workdir;
	char *name;
	char *name_flag;
	char *save;
	struct mount_entry *mounts;
	size_t n_mounts;
	char **env;
	size_t n_env;
	int mount_home;
	int remap_root;
	int entrypoint;
	int entrypoint_log;
	int writable;
};

extern struct options options;

int options_register(spank_t sp);
void options_from_environment(spank_t sp);
bool options_ask_for_container(void);
bool options_keep_env(const char *name);
int options_add_mount(const char *source, const char *target, const char *flags);

/* Of the plugin's line in plugstack.conf. */
struct settings {
	const char *runtime_path;
	bool execute_entrypoint;
	bool job_scope;
	bool sbatch_support;
};

extern struct settings settings;

#define MAX_GROUPS 256

/* Who runs the step, and with what. */
struct job {
	uid_t uid;
	gid_t gid;
	gid_t groups[MAX_GROUPS];
	int n_groups;
	uint32_t id;
	uint32_t step;
	uint32_t local_tasks;
	uint32_t total_tasks;
	char **environment; /* NULL: this process's own */
	char cwd[PATH_MAX];
};

extern struct job job;

/* Between the tasks of the step on this node. */
struct shared;

struct shared *container_share(void);
bool container_is_temporary(void);
/* Decides on the container before there are tasks; what is wrong with the choice is said at once and told later. */
int container_choose(spank_t sp);
/* For each task, as the user: the first of them makes and starts the container. */
int container_start_once(struct shared *shared);
int container_enter(spank_t sp, struct shared *shared);
/* For each task's end; the last one saves and removes. */
int container_finish(struct shared *shared);
int container_remove_all(void);

/* The first process, stopped in the container with everything set up; -1 when that failed, which has been said. */
pid_t start_container(const char *name);
int start_merge_environment(spank_t sp, pid_t pid);

pid_t enroot_spawn(char *const argv[]);
int enroot_run(char *const argv[]);
FILE *enroot_read(char *const argv[]);
/* What the last `enroot` printed. */
void enroot_print_log(bool as_error);

#endif
