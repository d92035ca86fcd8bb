# shellcheck shell=sh
# The inside of harness/apart: what is this machine's is covered by what is the command's own, and then it runs.
# $1 its folder, $2 the name of its control groups, then the command.
folder=$1 mark=$2
shift 2

mount --bind "$PWD" "$PWD" # it may lie below what is covered now
exec 9<.
mount -t tmpfs -o mode=755 tmpfs "$folder/dev"
for node in null zero full random urandom tty fuse loop-control; do
    [ ! -e "/dev/$node" ] || cp -a "/dev/$node" "$folder/dev/"
done
number=0
while [ "$number" -lt 64 ]; do
    mknod -m 660 "$folder/dev/loop$number" b 7 "$number"
    number=$((number + 1))
done
mkdir "$folder/dev/pts" "$folder/dev/shm" "$folder/dev/mqueue"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$folder/dev/pts"
mount -t tmpfs -o mode=1777 tmpfs "$folder/dev/shm"
ln -s pts/ptmx "$folder/dev/ptmx"
ln -s /proc/self/fd "$folder/dev/fd"
ln -s /proc/self/fd/0 "$folder/dev/stdin"
ln -s /proc/self/fd/1 "$folder/dev/stdout"
ln -s /proc/self/fd/2 "$folder/dev/stderr"

for tree in /sys/fs/cgroup/*/"$mark"; do
    [ ! -d "$tree" ] || mount --bind "$tree" "${tree%/*}"
done
mount --bind "$folder/etc" /etc
mount --bind "$folder/lustre" /lustre
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/lock /run/sshd
here=$PWD
mount --rbind "$folder/dev" /dev
mount --bind "$folder/tmp" /tmp
mount --bind "$folder/root" /root
if [ ! -e "$here/harness/apart" ]; then
    mkdir -p "$here"
    mount --no-canonicalize --bind /proc/self/fd/9 "$here"
fi
exec 9<&-
mount -t proc proc /proc
ip link set lo up
cd "$here" || exit
# Not by exec: this shell is the first process here, and takes leave of those that nobody else waits for.
"$@"
exit $?
