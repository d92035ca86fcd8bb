/*
 * What a shell script cannot do of `enroot start` and `enroot exec`, as an unprivileged user:
 *
 *   main.c        the two commands
 *   mounts.c      fstab lines as mounts
 *   places.c      mount points inside the container's tree, resolved so that no link leads out of it
 *   variables.c   the environment of the container's first process
 *   pretend.c     what seems to succeed in a container
 */
#ifndef LAB_ENROOT_ENTER_H
#define LAB_ENROOT_ENTER_H

#include <limits.h>
#include <stdbool.h>

/* Mounts what the file `fstab` lists inside `root`; ends the process with Enroot's message when one that matters fails. */
void mounts_make(const char *root, const char *fstab);
/* Mounts `path` again with flags of its own; what the kernel has locked on it stays. */
int mounts_restrict(const char *path, unsigned long flags);

enum place { PLACE_NONE, PLACE_DIRECTORY, PLACE_FILE };

/* Opens `target` inside `root` with O_PATH; makes it when `missing` says what it should be. */
int place_open(int root, const char *target, enum place missing);

/* Replaces this process's environment by the NAME=VALUE entries of a file, which `separator` ends. */
int variables_load(const char *path, char separator, bool replace);
/* What a login sets, unless it is set. */
void variables_login(bool remapped);

#endif
