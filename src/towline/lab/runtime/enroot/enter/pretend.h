#ifndef LAB_ENROOT_PRETEND_H
#define LAB_ENROOT_PRETEND_H

/* From here on, for this process and what it starts. It needs no_new_privs, or CAP_SYS_ADMIN in its user namespace. */
int pretend_ownership(void);

#endif
