#!/bin/bash
# fulldisk.sh [N] - N times (20), a peer crawls a world of sites on a disk that is too small for it, from 24 MB up, until a write
# fails. Checks: it says so and that the disk is full, without a panic, and ends with exit 1; on the same disk made
# larger it goes on where it was and ends with the whole world fetched, with no more pages twice than there are sites: one of each may have been in flight.
# A disk is a tmpfs of its own, in a mount namespace. Takes some 20 s a disk. Exit 0 passed or skipped (said aloud), 1 failed.
#   FROM=24 STEP=2   MB of the first disk, and by how much each is larger than the one before     KEEP=1   keep the logs
. "$(dirname "$0")/common.sh"
times=${1:-20} from=${FROM:-24} step=${STEP:-2}
[ "$(uname -s)" = Linux ] || skip "no Linux"
[ "$(id -u)" = 0 ] || skip "a disk of its own needs root"
command -v wget >/dev/null || skip "no wget"
if [ -z "${FULLDISK:-}" ]; then
	unshare -m true 2>/dev/null || skip "mount namespaces cannot be made here"
	FULLDISK=1 exec unshare -m "$0" "$@"
fi
undo() { umount "$work/disk" 2>/dev/null || true; }
begin
mkdir "$work/disk"
admin=127.0.0.1:7791 api=127.0.0.1:7792
report() { "$bench" report --admin $admin "$@"; }
crawl() { # crawl LOG - runs the peer until it is idle; its exit code
	local code=0
	timeout 120 "$node" run --data "$work/disk/data" --listen /ip4/127.0.0.1/udp/0/quic-v1 --api $api --delay 5ms --contact ci@example.test --allow-net 127.76.0.0/16 \
		--seeds "$work/seeds" --until-idle 1s >"$1" 2>&1 || code=$?
	return $code
}
"$bench" world --prefix 127.76 --sites 60 --pages 60 --words 600 --admin $admin --seeds-out "$work/seeds" --gap 0s >"$work/world" 2>&1 & pids+=($!)
await 30 "the world does not answer" report
filled=0
for i in $(seq "$times"); do
	size=$((from + (i - 1) * step))
	wget -q -O /dev/null --post-data= "http://$admin/reset" || fail "the world does not forget the disk before"
	mount -t tmpfs -o size=${size}m echo-full "$work/disk"
	code=0; crawl "$work/log$i" || code=$?
	before=$(report)
	if [ $code != 0 ]; then
		filled=$((filled + 1))
		[ $code = 1 ] || fail "disk of $size MB: the peer ended with $code"
		grep -q 'store: disk full: ' "$work/log$i" || fail "disk of $size MB: it does not say that the disk is full"
		if grep -qE 'goroutine [0-9]+|^panic' "$work/log$i"; then fail "disk of $size MB: a panic"; fi
		mount -o remount,size=1g "$work/disk"
		code=0; crawl "$work/log$i.again" || code=$?
		[ $code = 0 ] || fail "disk of $size MB, made larger: the peer ended with $code"
	fi
	report --whole --twice 60 >/dev/null || fail "disk of $size MB: $(report)"
	say "disk of $size MB: $before; then $(report)"
	umount "$work/disk"
done
[ $filled -gt 0 ] || fail "no disk was too small"
say "$filled of $times disks were full, and nothing was lost; passed"
