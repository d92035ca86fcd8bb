/*
 * What the lab's shims share. A shim is a library that /etc/ld.so.preload of a lab host names; it changes what the
 * C library tells programs that users run there. Not meant: programs of root, what root's programs became by setuid(2)
 * alone, programs without the C library, and what runs in an image.
 *
 * Its strength is a number in a file, mapped, so that it ends in running programs, too, when the file says 0. After it
 * comes the time since when it has that strength, in milliseconds since 1970.
 */
#ifndef LAB_SHIM_H
#define LAB_SHIM_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#define SHOWN __attribute__((visibility("default")))
#define FIRST_USER 1000
#define DISK "/lustre"

static const volatile int64_t *strength_file;
static dev_t disk;

/* The real one. Looked up each time: it is cheap beside what the shims do. */
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

__attribute__((constructor)) static void map_strength(void)
{
	struct stat st;
	void *mapped;
	int fd;

	if (getauxval(AT_UID) < FIRST_USER)
		return;
	fd = (int)syscall(SYS_openat, AT_FDCWD, "/run/lab-faults/" SHIM, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	mapped = mmap(NULL, 2 * sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (mapped == MAP_FAILED)
		return;
	if (syscall(SYS_newfstatat, AT_FDCWD, DISK, &st, 0) == 0)
		disk = st.st_dev;
	strength_file = mapped;
}

/* 0 when the fault is off. */
static inline int64_t strength(void)
{
	return strength_file == NULL ? 0 : strength_file[0];
}

static inline int64_t since(void)
{
	return strength_file == NULL ? 0 : strength_file[1];
}

#endif
