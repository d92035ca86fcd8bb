/*
 * Lines of an fstab as Enroot reads them: a line may lack parts, which are then guessed, and words among its options that
 * mean nothing here are passed on to the kernel, which passes over them on a bind mount.
 */
#define _GNU_SOURCE
#include "enter.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static const struct {
	const char *name;
	unsigned long set;
	unsigned long clear;
} words[] = {
	{ "ro", MS_RDONLY, 0 },      { "rw", 0, MS_RDONLY },       { "nosuid", MS_NOSUID, 0 }, { "suid", 0, MS_NOSUID },
	{ "nodev", MS_NODEV, 0 },    { "dev", 0, MS_NODEV },       { "noexec", MS_NOEXEC, 0 }, { "exec", 0, MS_NOEXEC },
	{ "bind", MS_BIND, 0 },      { "rbind", MS_BIND | MS_REC, 0 },
	{ "noatime", MS_NOATIME, 0 }, { "relatime", MS_RELATIME, 0 },
	/* The tree's mounts are all the container's own, whatever is asked for. */
	{ "private", 0, 0 },         { "rprivate", 0, 0 },         { "slave", 0, 0 },          { "rslave", 0, 0 },
	{ "shared", 0, 0 },          { "rshared", 0, 0 },          { "nofail", 0, 0 },         { "silent", 0, 0 },
	{ "x-create=dir", 0, 0 },    { "x-create=file", 0, 0 },    { "x-create=auto", 0, 0 },  { "x-detach", 0, 0 },
};

struct request {
	const struct mntent *entry;
	unsigned long flags;
	char data[1024];
};

static bool is_known(const char *word, unsigned long *flags)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (strcmp(word, words[i].name) == 0) {
			*flags = (*flags | words[i].set) & ~words[i].clear;
			return true;
		}
	return false;
}

static void parse_options(struct request *request)
{
	char copy[sizeof(request->data)], *rest = copy, *word;

	snprintf(copy, sizeof(copy), "%s", request->entry->mnt_opts);
	while ((word = strsep(&rest, ",")) != NULL) {
		if (*word == '\0' || is_known(word, &request->flags))
			continue;
		if (*request->data != '\0')
			strcat(request->data, ",");
		strcat(request->data, word);
	}
}

/* The kernel refuses, in a user namespace, to take off a flag that the mount had outside. */
static unsigned long locked_flags(const char *path)
{
	static const struct {
		unsigned long of_statvfs;
		unsigned long of_mount;
	} flags[] = {
		{ ST_NOSUID, MS_NOSUID }, { ST_NODEV, MS_NODEV },     { ST_NOEXEC, MS_NOEXEC },         { ST_RDONLY, MS_RDONLY },
		{ ST_NOATIME, MS_NOATIME }, { ST_NODIRATIME, MS_NODIRATIME }, { ST_RELATIME, MS_RELATIME },
	};
	unsigned long locked = 0;
	struct statvfs st;

	if (statvfs(path, &st) == 0)
		for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++)
			if (st.f_flag & flags[i].of_statvfs)
				locked |= flags[i].of_mount;
	return locked;
}

int mounts_restrict(const char *path, unsigned long flags)
{
	return mount(NULL, path, NULL, MS_REMOUNT | MS_BIND | flags | locked_flags(path), NULL);
}

static enum place missing_place(const struct request *request)
{
	struct stat st;

	if (hasmntopt(request->entry, "x-create=file"))
		return PLACE_FILE;
	if (hasmntopt(request->entry, "x-create=dir"))
		return PLACE_DIRECTORY;
	if (!hasmntopt(request->entry, "x-create=auto"))
		return PLACE_NONE;
	if (!(request->flags & MS_BIND))
		return PLACE_DIRECTORY;
	if (stat(request->entry->mnt_fsname, &st) < 0)
		return PLACE_NONE;
	return S_ISDIR(st.st_mode) ? PLACE_DIRECTORY : PLACE_FILE;
}

/* By its descriptor; a mount on top of it needs the place opened anew. */
static int mount_at(const struct request *request, const char *place, int root)
{
	unsigned long restrictions = request->flags & ~(unsigned long)(MS_BIND | MS_REC);
	char again[32];
	int fd, rc;

	if (!(request->flags & MS_BIND))
		return mount(request->entry->mnt_fsname, place, request->entry->mnt_type, request->flags, request->data);
	if (mount(request->entry->mnt_fsname, place, NULL, request->flags & (MS_BIND | MS_REC), NULL) < 0)
		return -1;
	if (restrictions == 0)
		return 0;
	fd = place_open(root, request->entry->mnt_dir, PLACE_NONE);
	if (fd < 0)
		return -1;
	snprintf(again, sizeof(again), "/proc/self/fd/%d", fd);
	rc = mounts_restrict(again, restrictions);
	close(fd);
	return rc;
}

static int apply(const struct request *request, int root)
{
	char place[32];
	int rc, fd = place_open(root, request->entry->mnt_dir, missing_place(request));

	if (fd < 0)
		return -1;
	snprintf(place, sizeof(place), "/proc/self/fd/%d", fd);
	rc = hasmntopt(request->entry, "x-detach") ? umount2(place, MNT_DETACH) : mount_at(request, place, root);
	close(fd);
	return rc;
}

static bool is_options(const char *text)
{
	unsigned long flags = 0;

	return strchr(text, ',') != NULL || is_known(text, &flags);
}

/* SRC | SRC OPTIONS | SRC DST | SRC DST OPTIONS | SRC DST TYPE OPTIONS */
static void complete(struct mntent *entry)
{
	static char none[] = "none", tmpfs[] = "tmpfs", bind[] = "rbind,x-create=auto", empty[] = "";

	if (*entry->mnt_dir != '\0' && *entry->mnt_type == '\0' && is_options(entry->mnt_dir)) {
		entry->mnt_opts = entry->mnt_dir;
		entry->mnt_type = none;
		entry->mnt_dir = entry->mnt_fsname;
	}
	if (*entry->mnt_type != '\0' && *entry->mnt_opts == '\0' && is_options(entry->mnt_type)) {
		entry->mnt_opts = entry->mnt_type;
		entry->mnt_type = none;
	}
	if (*entry->mnt_dir == '\0')
		entry->mnt_dir = entry->mnt_fsname;
	if (strcmp(entry->mnt_fsname, "tmpfs") == 0 && (*entry->mnt_type == '\0' || strcmp(entry->mnt_type, "none") == 0))
		entry->mnt_type = tmpfs;
	if (*entry->mnt_type == '\0')
		entry->mnt_type = none;
	if (*entry->mnt_opts == '\0')
		entry->mnt_opts = strcmp(entry->mnt_type, "none") == 0 ? bind : empty;
}

static void mount_entry(const char *path, int root, const struct mntent *entry)
{
	struct request request = { .entry = entry };
	const char *verb = hasmntopt(entry, "x-detach") ? "unmount" : "mount";
	const char *slash = *entry->mnt_dir == '/' ? "" : "/";

	parse_options(&request);
	if (apply(&request, root) == 0)
		return;
	if (!hasmntopt(entry, "nofail"))
		err(EXIT_FAILURE, "failed to %s: %s at %s%s%s", verb, entry->mnt_fsname, path, slash, entry->mnt_dir);
	if (!hasmntopt(entry, "silent"))
		warn("failed to %s: %s at %s%s%s", verb, entry->mnt_fsname, path, slash, entry->mnt_dir);
}

void mounts_make(const char *root, const char *fstab)
{
	int fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	FILE *file = setmntent(fstab, "re");
	char line[4 * PATH_MAX];
	struct mntent entry;

	if (fd < 0 || file == NULL)
		err(EXIT_FAILURE, "failed to open: %s", fd < 0 ? root : fstab);
	while (getmntent_r(file, &entry, line, sizeof(line)) != NULL) {
		complete(&entry);
		mount_entry(root, fd, &entry);
	}
	endmntent(file);
	close(fd);
}
