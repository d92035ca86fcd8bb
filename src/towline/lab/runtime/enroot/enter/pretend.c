/*
 * Package managers give files to users that a container's one user cannot give them to. In Enroot's containers such calls
 * succeed without doing anything. Used by the plugin for the tasks, too.
 */
#define _GNU_SOURCE
#include "pretend.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define THIS_MACHINE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define THIS_MACHINE AUDIT_ARCH_AARCH64
#else
#error "only x86_64 and aarch64 are known here"
#endif

#define PRETEND(call) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO)

static struct sock_filter filter[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, THIS_MACHINE, 1, 0),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
#if defined(SYS_chown)
	PRETEND(SYS_chown),
	PRETEND(SYS_lchown),
#endif
	PRETEND(SYS_fchown),
	PRETEND(SYS_fchownat),
	PRETEND(SYS_setuid),
	PRETEND(SYS_setgid),
	PRETEND(SYS_setreuid),
	PRETEND(SYS_setregid),
	PRETEND(SYS_setresuid),
	PRETEND(SYS_setresgid),
	PRETEND(SYS_setgroups),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

int pretend_ownership(void)
{
	struct sock_fprog program = { .len = sizeof(filter) / sizeof(*filter), .filter = filter };

	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}
