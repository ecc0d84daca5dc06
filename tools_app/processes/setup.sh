# Runs as the first process of new mount and process namespaces, and starts the command as its child.
# Arguments: an empty directory, the directory of the workspace, the network (yes or no), then the command.
set -eu
root=$1 workspace=$2 network=$3
shift 3
read_only() {
  mount --bind "/$1" "$1"
  mount -o remount,bind,ro,nosuid,nodev "$1"
}
mount -t tmpfs -o size=16m,mode=755,nosuid,nodev tmpfs "$root"
cd "$root"
mkdir usr proc dev etc tmp workspace old
read_only usr
for name in bin sbin lib lib32 lib64 libx32; do
  if [ -L "/$name" ]; then ln -s "usr/$name" "$name"
  elif [ -d "/$name" ]; then mkdir "$name"; read_only "$name"; fi
done
for name in null zero full random urandom; do
  : > "dev/$name"
  mount --bind "/dev/$name" "dev/$name"
done
mkdir dev/shm
mount -t tmpfs -o size=64m,mode=1777,nosuid,nodev tmpfs dev/shm
ln -s /proc/self/fd dev/fd
ln -s /proc/self/fd/0 dev/stdin
ln -s /proc/self/fd/1 dev/stdout
ln -s /proc/self/fd/2 dev/stderr
files="ld.so.cache"
[ "$network" = no ] || files="$files resolv.conf hosts nsswitch.conf"
for name in $files; do [ ! -f "/etc/$name" ] || cp "/etc/$name" "etc/$name"; done
folders="alternatives"
[ "$network" = no ] || folders="$folders ssl"
for name in $folders; do
  [ ! -d "/etc/$name" ] || { mkdir "etc/$name"; read_only "etc/$name"; }
done
echo "user:x:0:0::/workspace:/bin/sh" > etc/passwd
echo "user:x:0:" > etc/group
mount -t proc proc proc
echo 0 > proc/sys/user/max_user_namespaces
# Where root has not made the namespace of shared memory. Older kernels refuse it here.
{ SET_SYSTEM_V; } 2> /dev/null || :
# The command is the user who owns the namespaces, and without capabilities may still set their bounds.
mount --bind proc/sys proc/sys
mount -o remount,bind,ro,nosuid,nodev,noexec proc/sys
mount -t tmpfs -o size=64m,mode=1777,nosuid,nodev tmpfs tmp
mount --bind "$workspace" workspace
mount -o remount,bind,nosuid,nodev workspace
pivot_root . old
cd /
umount -l /old
rmdir /old
mount -o remount,bind,ro,nosuid,nodev none /
set +e
setpriv --no-new-privs --bounding-set=-all --inh-caps=-all --ambient-caps=-all "$@"
exit $?
