#define _GNU_SOURCE
#include "enter.h"

#include <paths.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Later entries win. An entry without `=` is none. */
int variables_load(const char *path, char separator, bool replace)
{
	FILE *file = fopen(path, "re");
	char *line = NULL, *value;
	size_t size = 0;
	ssize_t n;

	if (file == NULL)
		return -1;
	if (replace)
		clearenv();
	while ((n = getdelim(&line, &size, separator, file)) > 0) {
		if (line[n - 1] == separator)
			line[n - 1] = '\0';
		value = strchr(line, '=');
		if (value == NULL || value == line)
			continue;
		*value = '\0';
		setenv(line, value + 1, 1);
	}
	free(line);
	fclose(file);
	return 0;
}

void variables_login(bool remapped)
{
	const struct passwd *user = getpwuid(remapped ? 0 : getuid());
	const char *name = user != NULL ? user->pw_name : "user";

	setenv("TERM", "dumb", 0);
	setenv("HOME", user != NULL ? user->pw_dir : "/", 0);
	setenv("SHELL", user != NULL && access(user->pw_shell, X_OK) == 0 ? user->pw_shell : _PATH_BSHELL, 0);
	setenv("USER", name, 0);
	setenv("LOGNAME", name, 0);
	setenv("PATH", remapped ? _PATH_STDPATH : _PATH_DEFPATH, 0);
}
