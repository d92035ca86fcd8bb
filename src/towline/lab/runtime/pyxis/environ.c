/*
 * The job's variables stay as they are unless the image has its own value in /etc/environment, where Enroot puts an
 * image's ENV; then that one counts, unless --container-env names the variable. PATH is never the node's own.
 */
#define _GNU_SOURCE
#include "pyxis.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* NAME=value in place, quotes around the value gone; NULL for a comment or anything else. */
static char *parse_line(char *line, char **value)
{
	char *name = line + strspn(line, " \t");
	size_t n = strcspn(name, "=");
	char *end;

	if (name[n] != '=' || n == 0 || isdigit((unsigned char)*name) || strncmp(name, "ENROOT_", 7) == 0)
		return NULL;
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)name[i]) && name[i] != '_')
			return NULL;
	name[n] = '\0';
	*value = name + n + 1;
	(*value)[strcspn(*value, "\r\n")] = '\0';
	end = *value + strlen(*value);
	if (end - *value >= 2 && (**value == '"' || **value == '\'') && end[-1] == **value) {
		end[-1] = '\0';
		++*value;
	}
	return name;
}

static int set_variable(spank_t sp, const char *name, const char *value)
{
	spank_err_t rc = spank_setenv(sp, name, value, options_keep_env(name) ? 0 : 1);

	if (rc == ESPANK_SUCCESS || rc == ESPANK_ENV_EXISTS)
		return 0;
	slurm_error("pyxis: failed to set %s: %s", name, spank_strerror(rc));
	return -1;
}

static int set_from_image(spank_t sp, FILE *file)
{
	char *line = NULL, *name, *value;
	size_t size = 0;
	int rc = 0;

	while (rc == 0 && getline(&line, &size, file) >= 0) {
		name = parse_line(line, &value);
		if (name != NULL)
			rc = set_variable(sp, name, value);
	}
	free(line);
	return rc;
}

/* To be called inside the container. */
int environment_merge(spank_t sp)
{
	static const char *const locale[] = { "LANG", "LANGUAGE", "LC_ALL" };
	FILE *file = fopen("/etc/environment", "re");
	int rc = set_variable(sp, "PATH", DEFAULT_PATH);

	for (size_t i = 0; i < sizeof(locale) / sizeof(*locale); i++)
		if (!options_keep_env(locale[i]))
			spank_unsetenv(sp, locale[i]);
	if (rc == 0 && options.mount_home == 1 && options.remap_root == 1)
		rc = set_variable(sp, "HOME", "/root");
	if (file == NULL)
		return rc;
	if (rc == 0)
		rc = set_from_image(sp, file);
	fclose(file);
	return rc;
}

/* The WORKDIR of the image, which Enroot leaves as a line of /etc/rc: cd "DIR" && unset OLDPWD || exit 1 */
void environment_workdir(char *path, size_t size)
{
	FILE *file = fopen("/etc/rc", "re");
	char *line = NULL;
	size_t capacity = 0;

	snprintf(path, size, "/");
	while (file != NULL && getline(&line, &capacity, file) >= 0) {
		char *end = strstr(line, "\" && unset OLDPWD");

		if (strncmp(line, "cd \"", 4) != 0 || end == NULL)
			continue;
		*end = '\0';
		snprintf(path, size, "%s", line + 4);
		break;
	}
	free(line);
	if (file != NULL)
		fclose(file);
}
