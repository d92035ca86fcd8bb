/*
 * The lab's stand-in for Pyxis: a SPANK plugin that runs the tasks of a step inside a container image.
 *
 *   plugin.c    the hooks Slurm calls, in the order of a task's life
 *   options.c   the --container-* options and their PYXIS_* variables
 *   image.c     which file is the image: checks a .sqsh, imports from a registry
 *   mounter.c   the root process that owns the step's mount namespace
 *   loop.c      the image's file as a file system of the user's
 *   rootfs.c    the container's file tree, built inside that namespace
 *   places.c    mount points inside the tree, resolved so that no link leads out of it
 *   identity.c  what the tree and the task say about who the user is
 *   environ.c   the image's environment over the job's
 *
 * Messages and exit codes are those of Pyxis 0.24 with Enroot 4.1.
 */
#ifndef LAB_PYXIS_H
#define LAB_PYXIS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
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
int options_mount_home(const char *home);

/* Who runs the step. The strings are a passwd and a group line's fields and never NULL. */
struct job {
	uid_t uid;
	gid_t gid;
	uint32_t id;
	uint32_t step;
	uint32_t local_tasks;
	uint32_t total_tasks;
	char user[256];
	char group[256];
	char home[PATH_MAX];
};

/* What the mounter needs to know; fixed before the first task exists. */
struct plan {
	const char *directory; /* of the node: the tree grows on a tmpfs over it, seen by the step alone */
	const struct options *options;
	struct job job;
};

enum stage { STAGE_OK, STAGE_CREATE, STAGE_START };

/* How building the tree ended; `text` is the line that Enroot would have printed. */
struct outcome {
	enum stage failed;
	char text[PATH_MAX + 256];
};

void outcome_fail(struct outcome *outcome, enum stage stage, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The root process of a step: `socket` talks to it, `namespace` is its mount namespace. */
struct mounter {
	int socket;
	int namespace;
};

/* Of `directory`: where the user may write, for images and what their import needs. */
#define SCRATCH "import"

int mounter_start(struct mounter *mounter, const struct plan *plan);
int mounter_enter(const struct mounter *mounter);
int mounter_build(const struct mounter *mounter, const int *fds, size_t n_fds, struct outcome *outcome);
void mounter_stop(struct mounter *mounter);

/* `sources` has one descriptor for each of the plan's mounts, -1 where a mount has no source. */
void rootfs_build(const struct plan *plan, int image, const int *sources, struct outcome *outcome);

enum place { PLACE_AUTO, PLACE_DIRECTORY, PLACE_FILE };

int place_open(int root, const char *target, enum place place, const struct job *job);
int place_write(int root, const char *target, const char *text, const struct job *job);
char *place_read(int root, const char *target);

int identity_write(int root, const struct job *job, bool remap_root);
int identity_assume(const struct job *job, bool remap_root);

int image_open(spank_t sp, const struct plan *plan);
int image_mount(int image, const char *target, const struct job *job);

int environment_merge(spank_t sp);
void environment_workdir(char *path, size_t size);

#endif
