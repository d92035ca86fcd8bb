/*
 * The first process of a container is a shell that stops itself as soon as `enroot start` has set everything up. Its
 * namespaces, working directory and environment are what the tasks get.
 */
#define _GNU_SOURCE
#include "pyxis.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- the configuration `enroot start` reads: a shell script that may define mounts, hooks and environ ----------------- */

/* For an fstab in a quoted here-document; getmntent(3) reads these four back, and no others. */
static void write_path(FILE *file, const char *path)
{
	for (; *path != '\0'; path++)
		if (strchr(" \t\n\\", *path) != NULL)
			fprintf(file, "\\%03o", (unsigned char)*path);
		else
			fputc(*path, file);
}

static void write_mounts(FILE *file)
{
	fprintf(file, "mounts() {\n\tcat <<'END'\n");
	for (size_t i = 0; i < options.n_mounts; i++) {
		write_path(file, options.mounts[i].source);
		fputc(' ', file);
		write_path(file, options.mounts[i].target);
		fprintf(file, " %s\n", options.mounts[i].flags);
	}
	fprintf(file, "END\n}\n");
}

static bool is_variable_name(const char *name)
{
	for (const char *c = name; *c != '\0'; c++)
		if (!isalnum((unsigned char)*c) && *c != '_')
			return false;
	return !isdigit((unsigned char)*name);
}

static void write_environ(FILE *file)
{
	fprintf(file, "environ() {\n");
	for (size_t i = 0; i < options.n_env; i++)
		if (is_variable_name(options.env[i]))
			fprintf(file, "\t[ -n \"${%1$s-}\" ] && echo \"%1$s=${%1$s}\" || :\n", options.env[i]);
	fprintf(file, "\t:\n}\n");
}

static bool runs_entrypoint(void)
{
	return options.entrypoint == 1 || (options.entrypoint == -1 && settings.execute_entrypoint);
}

/* Whatever cannot be reached for another reason than that it is not there, Enroot reports. */
static int check_sources(void)
{
	struct stat st;

	for (size_t i = 0; i < options.n_mounts; i++) {
		const char *source = options.mounts[i].source;

		if (*source == '/' && stat(source, &st) < 0 && (errno == ENOENT || errno == ENOTDIR)) {
			slurm_error("pyxis: --container-mounts: source path does not exist: %s", source);
			return -1;
		}
	}
	return 0;
}

static int write_configuration(char *path)
{
	int fd = check_sources() < 0 ? -1 : mkstemp(path);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");

	if (file == NULL) {
		*path = '\0';
		return -1;
	}
	if (options.n_mounts > 0)
		write_mounts(file);
	/* An image's command script ends by running the entrypoint, but for what this file of it does before. */
	if (!runs_entrypoint())
		fprintf(file, "hooks() {\n\techo 'exec \"$@\"' >\"${ENROOT_ROOTFS}/etc/rc.local\"\n}\n");
	if (options.n_env > 0)
		write_environ(file);
	return fclose(file) == 0 ? 0 : -1;
}

/* --- the process ---------------------------------------------------------------------------------------------------- */

static void blame_entrypoint(void)
{
	if (runs_entrypoint())
		slurm_error("pyxis: if the image has an unusual entrypoint, try using --no-container-entrypoint");
}

static pid_t start_and_wait(const char *name, const char *configuration)
{
	pid_t pid = enroot_spawn((char *const[]){ "enroot", "start", "--conf", (char *)configuration, (char *)name, "sh", "-c",
						  "kill -STOP $$; exit 0", NULL });
	int status = 0;

	if (pid < 0 || waitpid(pid, &status, WUNTRACED) < 0) {
		slurm_error("pyxis: failed to start container");
		return -1;
	}
	if (WIFSTOPPED(status))
		return pid;
	if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
		slurm_error("pyxis: container start failed with error code: %d", WEXITSTATUS(status));
	else
		slurm_error("pyxis: container exited too soon");
	blame_entrypoint();
	return -1;
}

pid_t start_container(const char *name)
{
	char configuration[] = "/tmp/.enroot_config_XXXXXX";
	pid_t pid = -1;

	if (write_configuration(configuration) < 0)
		slurm_error("pyxis: couldn't create enroot start configuration script");
	else
		pid = start_and_wait(name, configuration);
	if (pid < 0)
		enroot_print_log(true);
	else if (runs_entrypoint() && options.entrypoint_log == 1)
		enroot_print_log(false);
	if (*configuration != '\0')
		unlink(configuration);
	return pid;
}

static int merge_variable(spank_t sp, char *entry)
{
	char *value = strchr(entry, '=');
	spank_err_t rc;

	if (value == NULL)
		return 0;
	*value++ = '\0';
	rc = spank_setenv(sp, entry, value, options_keep_env(entry) ? 0 : 1);
	if (rc == ESPANK_SUCCESS || rc == ESPANK_ENV_EXISTS)
		return 0;
	slurm_error("pyxis: failed to set %s: %s", entry, spank_strerror(rc));
	return -1;
}

/* Programs of PyTorch take each task's place in the job from variables of their own; its images are told by another. */
static void name_ranks(spank_t sp)
{
	static const char *const names[][2] = { { "SLURM_PROCID", "RANK" }, { "SLURM_LOCALID", "LOCAL_RANK" } };
	char value[256];

	if (spank_getenv(sp, "PYTORCH_VERSION", value, sizeof(value)) != ESPANK_SUCCESS)
		return;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (spank_getenv(sp, names[i][0], value, sizeof(value)) == ESPANK_SUCCESS)
			spank_setenv(sp, names[i][1], value, 1);
}

/* The job's variables stay, but for those that the container has its own value of. */
int start_merge_environment(spank_t sp, pid_t pid)
{
	static const char *const locale[] = { "LANG", "LANGUAGE", "LC_ALL" };
	char path[64], *entry = NULL;
	size_t size = 0;
	int rc = 0;
	FILE *file;

	for (size_t i = 0; i < sizeof(locale) / sizeof(*locale); i++)
		if (!options_keep_env(locale[i]))
			spank_unsetenv(sp, locale[i]);
	snprintf(path, sizeof(path), "/proc/%d/environ", pid);
	file = fopen(path, "re");
	if (file == NULL) {
		slurm_error("pyxis: couldn't read %s", path);
		return -1;
	}
	while (rc == 0 && getdelim(&entry, &size, '\0', file) > 0)
		rc = merge_variable(sp, entry);
	free(entry);
	fclose(file);
	name_ranks(sp);
	return rc;
}
