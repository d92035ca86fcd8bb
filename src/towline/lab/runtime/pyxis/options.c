#define _GNU_SOURCE
#include "pyxis.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define IGNORED "because neither --container-image nor --container-name is set"

struct options options = {
	.mount_home = -1, .remap_root = -1, .entrypoint = -1, .entrypoint_log = -1, .writable = -1,
};

/* Slurm calls a callback again with the same value; only another value is a mistake. */
static int set_text(char **field, const char *option, const char *value)
{
	if (value == NULL || *value == '\0') {
		slurm_error("pyxis: --%s: argument required", option);
		return -1;
	}
	if (*field != NULL && strcmp(*field, value) != 0) {
		slurm_error("pyxis: --%s specified multiple times", option);
		return -1;
	}
	if (*field == NULL)
		*field = strdup(value);
	return *field == NULL ? -1 : 0;
}

static int set_switch(int *field, int value, const char *yes, const char *no)
{
	if (*field != -1 && *field != value) {
		slurm_error("pyxis: both --%s and --%s were specified", yes, no);
		return -1;
	}
	*field = value;
	return 0;
}

static int on_image(int val, const char *arg, int remote)
{
	(void)val;
	(void)remote;
	return set_text(&options.image, "container-image", arg);
}

static int on_workdir(int val, const char *arg, int remote)
{
	(void)val;
	(void)remote;
	return set_text(&options.workdir, "container-workdir", arg);
}

static int on_save(int val, const char *arg, int remote)
{
	(void)val;
	(void)remote;
	if (arg != NULL && *arg != '\0' && arg[strlen(arg) - 1] == '/') {
		slurm_error("pyxis: --container-save: target is a directory");
		return -1;
	}
	return set_text(&options.save, "container-save", arg);
}

static bool known_name_flag(const char *flag)
{
	return strcmp(flag, "auto") == 0 || strcmp(flag, "create") == 0 || strcmp(flag, "exec") == 0 ||
	       strcmp(flag, "no_exec") == 0;
}

static int on_name(int val, const char *arg, int remote)
{
	char *copy, *flag;
	int rc;

	(void)val;
	(void)remote;
	if (arg == NULL || *arg == '\0')
		return set_text(&options.name, "container-name", arg);
	copy = strdup(arg);
	if (copy == NULL)
		return -1;
	flag = strchr(copy, ':');
	if (flag != NULL)
		*flag++ = '\0';
	if (flag == NULL || *flag == '\0')
		flag = "auto";
	if (*copy == '\0') {
		slurm_error("pyxis: --container-name: empty name");
		rc = -1;
	} else if (!known_name_flag(flag)) {
		slurm_error("pyxis: --container-name: flag must be \"auto\", \"create\", \"exec\" or \"no_exec\"");
		rc = -1;
	} else {
		rc = set_text(&options.name, "container-name", copy);
		if (rc == 0)
			rc = set_text(&options.name_flag, "container-name", flag);
	}
	free(copy);
	return rc;
}

static bool same_mount(const struct mount_entry *entry, const char *source, const char *target, const char *flags)
{
	return strcmp(entry->source, source) == 0 && strcmp(entry->target, target) == 0 &&
	       strcmp(entry->flags, flags) == 0;
}

int options_add_mount(const char *source, const char *target, const char *flags)
{
	struct mount_entry *grown, *entry;

	for (size_t i = 0; i < options.n_mounts; i++)
		if (same_mount(&options.mounts[i], source, target, flags))
			return 0;
	grown = realloc(options.mounts, (options.n_mounts + 1) * sizeof(*grown));
	if (grown == NULL)
		return -1;
	options.mounts = grown;
	entry = &grown[options.n_mounts];
	entry->source = strdup(source);
	entry->target = strdup(target);
	entry->flags = strdup(flags);
	if (entry->source == NULL || entry->target == NULL || entry->flags == NULL)
		return -1;
	options.n_mounts++;
	return 0;
}

static bool is_path(const char *text)
{
	return *text == '/' || *text == '.';
}

/* What Enroot is told beside the user's flags; NULL when the source is neither a path nor a word known here. */
static const char *default_flags(const char *source)
{
	if (is_path(source))
		return "x-create=auto,rbind";
	if (strcmp(source, "tmpfs") == 0)
		return "x-create=dir";
	return strcmp(source, "umount") == 0 ? "x-detach" : NULL;
}

static int check_mount(const char *source, const char *target)
{
	if (default_flags(source) == NULL) {
		slurm_error("pyxis: mount source must be a relative path, an absolute path, \"tmpfs\" or \"umount\"");
		return -1;
	}
	if (!is_path(target)) {
		slurm_error("pyxis: mount target must be a relative path or an absolute path");
		return -1;
	}
	return 0;
}

/* SRC[:DST[:FLAG+FLAG...]]; the comma between flags is taken by the list of mounts. */
static int add_mount_text(char *text)
{
	char *source = strsep(&text, ":");
	char *target = text == NULL ? source : strsep(&text, ":");
	char *flags = NULL;
	int rc = -1;

	if (*source == '\0' || *target == '\0') {
		slurm_error("pyxis: --container-mounts: invalid format: %s", source);
		return -1;
	}
	for (char *c = text; c != NULL && *c != '\0'; c++)
		if (*c == '+')
			*c = ',';
	if (check_mount(source, target) == 0 &&
	    asprintf(&flags, text == NULL || *text == '\0' ? "%s" : "%s,%s", default_flags(source), text) >= 0)
		rc = options_add_mount(source, target, flags);
	if (rc < 0)
		slurm_error("pyxis: could not add mount entry: %s:%s", source, target);
	free(flags);
	return rc;
}

static int add_env_name(char *name)
{
	char **grown;

	if (*name == '\0')
		return -1;
	if (options_keep_env(name))
		return 0;
	grown = realloc(options.env, (options.n_env + 1) * sizeof(*grown));
	if (grown == NULL)
		return -1;
	options.env = grown;
	grown[options.n_env] = strdup(name);
	if (grown[options.n_env] == NULL)
		return -1;
	options.n_env++;
	return 0;
}

static int for_each_item(const char *option, const char *arg, int (*add)(char *))
{
	char *copy, *rest, *item;
	int rc = 0;

	if (arg == NULL || *arg == '\0') {
		slurm_error("pyxis: --%s: argument required", option);
		return -1;
	}
	copy = rest = strdup(arg);
	if (copy == NULL)
		return -1;
	while (rc == 0 && (item = strsep(&rest, ",")) != NULL)
		rc = add(item);
	free(copy);
	return rc;
}

static int on_mounts(int val, const char *arg, int remote)
{
	(void)val;
	(void)remote;
	return for_each_item("container-mounts", arg, add_mount_text);
}

static int on_env(int val, const char *arg, int remote)
{
	int rc;

	(void)val;
	(void)remote;
	rc = for_each_item("container-env", arg, add_env_name);
	if (rc < 0 && arg != NULL && *arg != '\0')
		slurm_error("pyxis: --container-env: invalid format: %s", arg);
	return rc;
}

static int on_mount_home(int val, const char *arg, int remote)
{
	(void)arg;
	(void)remote;
	return set_switch(&options.mount_home, val, "container-mount-home", "no-container-mount-home");
}

static int on_remap_root(int val, const char *arg, int remote)
{
	(void)arg;
	(void)remote;
	return set_switch(&options.remap_root, val, "container-remap-root", "no-container-remap-root");
}

static int on_entrypoint(int val, const char *arg, int remote)
{
	(void)arg;
	(void)remote;
	return set_switch(&options.entrypoint, val, "container-entrypoint", "no-container-entrypoint");
}

static int on_entrypoint_log(int val, const char *arg, int remote)
{
	(void)arg;
	(void)remote;
	options.entrypoint_log = val;
	return 0;
}

static int on_writable(int val, const char *arg, int remote)
{
	(void)arg;
	(void)remote;
	return set_switch(&options.writable, val, "container-writable", "container-readonly");
}

static struct spank_option table[] = {
	{ "container-image", "[USER@][REGISTRY#]IMAGE[:TAG]|PATH",
	  "[pyxis] the image to use for the container filesystem: a registry reference or a path to a squashfs file",
	  1, 0, on_image },
	{ "container-mounts", "SRC:DST[:FLAGS][,SRC:DST...]",
	  "[pyxis] bind mounts inside the container; flags are separated with \"+\"", 1, 0, on_mounts },
	{ "container-workdir", "PATH", "[pyxis] working directory inside the container", 1, 0, on_workdir },
	{ "container-name", "NAME", "[pyxis] name to use for the container on the host", 1, 0, on_name },
	{ "container-save", "PATH", "[pyxis] save the container state to a squashfs file", 1, 0, on_save },
	{ "container-mount-home", NULL, "[pyxis] bind mount the user's home directory", 0, 1, on_mount_home },
	{ "no-container-mount-home", NULL, "[pyxis] do not bind mount the home directory", 0, 0, on_mount_home },
	{ "container-remap-root", NULL, "[pyxis] be root inside the container", 0, 1, on_remap_root },
	{ "no-container-remap-root", NULL, "[pyxis] do not be root inside the container", 0, 0, on_remap_root },
	{ "container-entrypoint", NULL, "[pyxis] execute the entrypoint of the image", 0, 1, on_entrypoint },
	{ "no-container-entrypoint", NULL, "[pyxis] do not execute the entrypoint", 0, 0, on_entrypoint },
	{ "container-entrypoint-log", NULL, "[pyxis] print the output of the entrypoint", 0, 1, on_entrypoint_log },
	{ "container-writable", NULL, "[pyxis] make the container filesystem writable", 0, 1, on_writable },
	{ "container-readonly", NULL, "[pyxis] make the container filesystem read-only", 0, 0, on_writable },
	{ "container-env", "NAME[,NAME...]", "[pyxis] variables whose host value wins over the image's", 1, 0, on_env },
	SPANK_OPTIONS_TABLE_END
};

int options_register(spank_t sp)
{
	for (struct spank_option *option = table; option->name != NULL; option++)
		if (spank_option_register(sp, option) != ESPANK_SUCCESS) {
			slurm_error("pyxis: couldn't register option %s", option->name);
			return -1;
		}
	return 0;
}

static int parse_bool(const char *text)
{
	static const char *const yes[] = { "1", "true", "yes", "y" }, *const no[] = { "0", "false", "no", "n" };

	for (size_t i = 0; i < sizeof(yes) / sizeof(*yes); i++) {
		if (strcmp(text, yes[i]) == 0)
			return 1;
		if (strcmp(text, no[i]) == 0)
			return 0;
	}
	return -1;
}

/* A PYXIS_* variable stands in for an option that was not given. */
static void text_from_environment(spank_t sp, const char *name, bool given, spank_opt_cb_f callback)
{
	char buffer[PATH_MAX];
	const char *value = NULL;

	if (given)
		return;
	if (spank_context() != S_CTX_REMOTE)
		value = getenv(name);
	else if (spank_getenv(sp, name, buffer, sizeof(buffer)) == ESPANK_SUCCESS)
		value = buffer;
	if (value != NULL)
		callback(0, value, 0);
}

static void switch_from_environment(spank_t sp, const char *name, int current, spank_opt_cb_f callback, bool inverted)
{
	char buffer[8];
	const char *value = NULL;
	int is_set;

	if (current != -1)
		return;
	if (spank_context() != S_CTX_REMOTE)
		value = getenv(name);
	else if (spank_getenv(sp, name, buffer, sizeof(buffer)) == ESPANK_SUCCESS)
		value = buffer;
	is_set = value == NULL ? -1 : parse_bool(value);
	if (is_set >= 0)
		callback(inverted ? !is_set : is_set, NULL, 0);
}

void options_from_environment(spank_t sp)
{
	text_from_environment(sp, "PYXIS_CONTAINER_IMAGE", options.image != NULL, on_image);
	text_from_environment(sp, "PYXIS_CONTAINER_MOUNTS", options.n_mounts > 0, on_mounts);
	text_from_environment(sp, "PYXIS_CONTAINER_WORKDIR", options.workdir != NULL, on_workdir);
	text_from_environment(sp, "PYXIS_CONTAINER_NAME", options.name != NULL, on_name);
	text_from_environment(sp, "PYXIS_CONTAINER_SAVE", options.save != NULL, on_save);
	switch_from_environment(sp, "PYXIS_CONTAINER_MOUNT_HOME", options.mount_home, on_mount_home, false);
	switch_from_environment(sp, "PYXIS_CONTAINER_REMAP_ROOT", options.remap_root, on_remap_root, false);
	switch_from_environment(sp, "PYXIS_CONTAINER_ENTRYPOINT", options.entrypoint, on_entrypoint, false);
	switch_from_environment(sp, "PYXIS_CONTAINER_ENTRYPOINT_LOG", options.entrypoint_log, on_entrypoint_log, false);
	switch_from_environment(sp, "PYXIS_CONTAINER_WRITABLE", options.writable, on_writable, false);
	switch_from_environment(sp, "PYXIS_CONTAINER_READONLY", options.writable, on_writable, true);
	text_from_environment(sp, "PYXIS_CONTAINER_ENV", options.n_env > 0, on_env);
}

static void warn_ignored(bool given, const char *option)
{
	if (given)
		slurm_error("pyxis: ignoring --%s " IGNORED, option);
}

bool options_ask_for_container(void)
{
	if (options.image != NULL || options.name != NULL)
		return true;
	warn_ignored(options.n_mounts > 0, "container-mounts");
	warn_ignored(options.workdir != NULL, "container-workdir");
	warn_ignored(options.save != NULL, "container-save");
	warn_ignored(options.mount_home != -1, "[no-]container-mount-home");
	warn_ignored(options.remap_root != -1, "[no-]container-remap-root");
	warn_ignored(options.entrypoint != -1, "[no-]container-entrypoint");
	warn_ignored(options.entrypoint_log != -1, "container-entrypoint-log");
	warn_ignored(options.writable == 0, "container-readonly");
	warn_ignored(options.writable == 1, "container-writable");
	return false;
}

bool options_keep_env(const char *name)
{
	for (size_t i = 0; i < options.n_env; i++)
		if (strcmp(options.env[i], name) == 0)
			return true;
	return false;
}
