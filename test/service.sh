#!/usr/bin/env bash
# Tries `svc service` on a booted Debian: test/service.sh [suite]   (bookworm has systemd 252, trixie 257)
# Needs root, mmdebstrap, and dist/svc (make build). systemd runs as process 1 of namespaces of its own, with a /proc that nothing
# covers, as on a real machine; nspawn would cover parts of it and hide what the unit's own lines do to isolation.
#
# What stands in single quotes is for the shell inside.
# shellcheck disable=SC2016
set -euo pipefail
cd "$(dirname "$0")/.."
suite=${1:-trixie}
work=$(mktemp -d /tmp/svc-boot-XXXXXX)
root=$work/root
leader=

finish() {
  [[ -z $leader ]] || kill -KILL "$leader" 2>/dev/null || true
  sleep 0.5
  rm -rf --one-file-system "$work"
  rmdir /sys/fs/cgroup/{,unified/}svc-boot-$$ 2>/dev/null || true
}
trap finish EXIT

mmdebstrap --quiet --variant=minbase \
  --include=systemd,systemd-sysv,dbus,dbus-user-session,libpam-systemd,util-linux,procps,passwd "$suite" "$root" 2>"$work/made" ||
  { cat "$work/made" >&2; exit 1; }
install -m 755 dist/svc "$root/usr/local/bin/svc"

# Where version 1 of cgroups is mounted, version 2 is beside it.
cgroup=/sys/fs/cgroup
[[ ! -d $cgroup/unified ]] || cgroup=$cgroup/unified
mkdir -p "$cgroup/svc-boot-$$"

export root cgroup group=svc-boot-$$
unshare --mount --pid --uts --ipc --net --fork --propagation private bash -euc '
  echo $$ >"$cgroup/$group/cgroup.procs"
  exec unshare --cgroup bash -euc "
    mount --bind $root $root
    mount -t proc proc $root/proc
    mount -t sysfs -o ro sysfs $root/sys
    mount -t cgroup2 cgroup2 $root/sys/fs/cgroup
    mount -t tmpfs -o mode=755 tmpfs $root/run
    mount -t tmpfs -o mode=755 tmpfs $root/dev
    for node in null zero full random urandom tty; do cp -a /dev/\$node $root/dev/; done
    ln -s /proc/self/fd $root/dev/fd
    ln -s pts/ptmx $root/dev/ptmx
    mkdir $root/dev/shm $root/dev/pts
    mount -t devpts -o newinstance,ptmxmode=0666 devpts $root/dev/pts
    cd $root
    mkdir -p .old
    pivot_root . .old
    exec chroot . sh -c \"umount -l /.old; exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin \
      SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1 /lib/systemd/systemd --show-status=no\"
  "
' </dev/null >"$work/boot" 2>&1 &

inside() {
  nsenter -t "$leader" -m -p -u -i -n -C -r -w env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C "$@"
}
for _ in $(seq 100); do
  leader=$(pgrep -P $! | head -1) || true
  [[ -n $leader ]] && inside systemctl is-system-running 2>/dev/null | grep -qE 'running|degraded' && break
  sleep 0.2
done
inside systemctl --version | head -1

passed=0 failed=0
check() {
  local name=$1
  shift
  if "$@" >"$work/said" 2>&1; then passed=$((passed + 1)) && echo "ok      $name"; else
    failed=$((failed + 1)) && echo "FAILED  $name" && sed 's/^/        /' "$work/said"
  fi
}
says() { inside journalctl -u svc -o cat --no-pager | grep -q "$1"; }
field() { inside svc service status | grep -qxP "$1\t$2"; }
fails_with() {
  local code=0
  inside "${@:2}" || code=$?
  [[ $code -eq $1 ]]
}
killed_and_back() {
  inside sh -c 'kill -KILL "$(systemctl show svc -p MainPID --value)"'
  for _ in $(seq 50); do sleep 0.2 && field restarts 1 && field running true && return; done
  return 1
}

check "status before: not installed (3)" fails_with 3 svc service status
check "install" inside svc service install
check "it runs, said by itself (sd_notify)" field says 'ready at http://127\.0\.0\.1:8080'
check "it starts with the machine" field starts_at_boot true
check "runs keep their pid namespace" says 'isolated by namespace'
check "it runs as svc" inside sh -c 'ps -o user= -C svc | grep -qx svc'
check "a message gets its reply" inside sh -c \
  'svc ctl -c /etc/svc/config.yaml worker create -n Echo -q && [ "$(svc ctl -c /etc/svc/config.yaml chat "@Echo hi")" = hi ]'
check "killed, it is started again" killed_and_back
hung_and_back() {
  inside sh -c 'mkdir -p /run/systemd/system/svc.service.d
    printf "[Service]\nWatchdogSec=2s\n" >/run/systemd/system/svc.service.d/watchdog.conf
    systemctl daemon-reload && systemctl reset-failed svc && systemctl restart svc
    kill -STOP "$(systemctl show svc -p MainPID --value)"'
  for _ in $(seq 100); do sleep 0.2 && field restarts 1 && field running true && break; done
  field restarts 1 && inside sh -c 'rm -r /run/systemd/system/svc.service.d && systemctl daemon-reload && systemctl restart svc'
}
check "hung, it is started again (watchdog)" hung_and_back
check "health" inside svc health -c /etc/svc/config.yaml
check "installing again changes nothing" inside sh -c 'svc service install 2>&1 | grep -q "is unchanged"'
check "systemd-analyze verify has no word about it" inside sh -c '! systemd-analyze verify svc.service 2>&1 | grep svc'
check "stop ends it in order" inside sh -c 'systemctl stop svc && systemctl show svc -p Result --value | grep -qx success'
check "status: stopped (6)" fails_with 6 svc service status
check "a wrong configuration is not tried again" inside sh -c \
  'echo "frob: 1" >>/etc/svc/config.yaml; ! systemctl start svc && systemctl show svc -p NRestarts --value | grep -qx 0
   sed -i /frob/d /etc/svc/config.yaml; systemctl reset-failed svc; systemctl start svc'
check "uninstall leaves the data" inside sh -c 'svc service uninstall && [ -f /var/lib/svc/svc.db ] && [ ! -e /etc/systemd/system/svc.service ]'
check "uninstall again: there is none (3)" fails_with 3 svc service uninstall

inside useradd --create-home ada
inside loginctl enable-linger ada
for _ in $(seq 50); do
  if inside systemctl is-active --quiet "user@$(inside id -u ada)"; then break; fi
  sleep 0.2
done
as_ada() { inside setpriv --reuid ada --regid ada --init-groups env HOME=/home/ada XDG_RUNTIME_DIR=/run/user/1000 sh -c "cd; $1"; }
check "a user installs one of her own" as_ada 'svc service install && svc service status | grep -q "ready at"'
check "and uses it" as_ada 'svc ctl -c ~/.config/svc/config.yaml worker create -n Echo -q && svc service uninstall'
check "but none of the machine (4)" as_ada 'code=0; svc service install --system || code=$?; [ $code = 4 ]'

check "V8 dies under MemoryDenyWriteExecute, which is why it is not in the unit" fails_with 1 sh -c \
  'systemd-run --quiet --wait --pipe -p MemoryDenyWriteExecute=yes /usr/local/bin/svc version >/dev/null 2>&1 || exit 1'

echo "systemd-analyze security: $(inside sh -c 'svc service install 2>/dev/null; systemd-analyze security svc.service --no-pager | tail -1')"
echo "$passed passed, $failed failed"
[[ $failed -eq 0 ]]
