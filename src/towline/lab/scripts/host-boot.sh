#!/bin/sh
# The first process of one lab host, started in fresh network, UTS, IPC, PID and mount namespaces.
# It gives the host a name and files of its own, says "ready", and then stands for the host: when it dies, all of the host does.
# usage: host-boot.sh STATE-FOLDER NAME ROLE
set -eu
state=$1 name=$2 role=$3
own=$state/hosts/$name
umask 022

mount -t proc proc /proc
printf '%s\n' "$name" >/proc/sys/kernel/hostname

if [ "$role" != switch ]; then
    # A /etc of its own: a file that the machine's package manager replaces loses what is mounted on it in every
    # namespace, and the host would lose its users. The empty folder is there because overlays want two.
    mkdir -p "$own/etc"
    mount -t overlay -o "ro,lowerdir=$own/etc:/etc" overlay /etc
    for file in passwd group shadow hosts nsswitch.conf; do
        mount --bind "$state/etc/$file" "/etc/$file"
    done
    mount --bind "$own/hostname" /etc/hostname
    mount --bind "$state/etc" /etc/slurm
    mount --bind "$state/home" /home
    mount --bind "$state/mnt/lustre" /lustre
    mount --bind "$own/root" /root
    mount --bind "$own/tmp" /tmp
    mount --bind "$own/var-tmp" /var/tmp
    mount --bind "$own/log" /var/log
    case $role in
    gpu | cloud) mount --bind "$state/runtime/gpu-bin" /usr/local/bin ;;
    *) mount --bind "$state/runtime/bin" /usr/local/bin ;;
    esac
    mount -t tmpfs -o mode=1777 tmpfs /dev/shm
    mount -t tmpfs -o mode=755 tmpfs /run
    mkdir -p /run/munge /run/sshd /run/mysqld /run/lock /run/containers /run/slurm
    chmod 1777 /run/lock
    chown mysql:mysql /run/mysqld
    chown slurm:slurm /run/slurm
    mount --bind "$state/run/munge" /run/munge
    mount --bind "$own/containers" /run/containers
    if [ -f "$state/runtime/host-setup.sh" ]; then
        sh "$state/runtime/host-setup.sh" "$state" "$name" "$role"
    fi
fi

echo ready
exec >/dev/null 2>&1
# While the shell waits it also reaps whatever the host's processes leave behind.
while :; do
    env -u TOWLINE_LAB_HOLDER sleep infinity &
    wait $! || true
done
