#!/bin/bash
# maxdisk.sh [MB...] - crawls a world that is too large for it with --max-disk of so many MB (20 and 100), by one peer and by a
# swarm of three, until nothing is fetched any more. Checks: what du says of a data directory is never above the cap;
# status agrees with du within 5 % at the end, and says why nothing is fetched; every peer goes on running.
# Takes about a minute for each 100 MB. Exit 0 passed, 1 failed.     KEEP=1   keep the logs
. "$(dirname "$0")/common.sh"
[ $# -gt 0 ] || set -- 20 100
begin
admin=127.0.0.1:7795
pages() { field "$("$bench" report --admin $admin --json)" requests; }
# used DIR - the allocated bytes of it. Files come and go while du looks.
used() { local b; b=$(du -s --block-size=1 "$1" 2>/dev/null | cut -f1) || true; echo "${b:-0}"; }

# try CAP PEERS
try() {
	local cap=$1 peers=$2 dir=$work/$1-$2 i last now still most=() d join=() deadline log=$work/log.$1-$2
	mkdir -p "$dir"
	"$bench" world --plain --prefix 127.79 --sites 100 --pages $((cap + 20)) --words 1500 --admin $admin --seeds-out "$dir/seeds" >"$log.world" 2>&1 & pids+=($!)
	await 60 "the world does not answer" pages
	await 60 "the world has no seeds" test -s "$dir/seeds"
	for i in $(seq "$peers"); do
		"$node" run --data "$dir/peer$i" --listen /ip4/127.0.0.1/tcp/$((7900 + i)) --api 127.0.0.1:$((7910 + i)) --delay 5ms --contact ci@example.test \
			--allow-net 127.79.0.0/16 --max-disk "${cap}MB" --seeds "$dir/seeds" "${join[@]}" >"$log.peer$i" 2>&1 & pids+=($!)
		most[i]=0
		[ "$i" -gt 1 ] && continue
		await 60 "the first peer does not start" test -s "$dir/peer1/addrs"
		join=(--join "$(head -n 1 "$dir/peer1/addrs")")
	done
	last=0 still=$SECONDS deadline=$((SECONDS + 120 + 6 * cap))
	while [ $((SECONDS - still)) -lt 15 ]; do
		[ $SECONDS -lt $deadline ] || fail "cap $cap MB, $peers peers: they still fetch"
		for i in $(seq "$peers"); do
			d=$(used "$dir/peer$i"); [ "$d" -le "${most[i]}" ] || most[i]=$d
			[ "$d" -le $((cap * 1000000)) ] || find "$dir/peer$i" -type f -printf '%T+ %k kB %P\n' 2>/dev/null | sort >"$log.over$i" || true
		done
		now=$(pages); [ "$now" = "$last" ] || { last=$now still=$SECONDS; }
		sleep 0.3
	done
	for i in $(seq "$peers"); do
		d=$(used "$dir/peer$i"); now=$(field "$("$node" status --json --api 127.0.0.1:$((7910 + i)))" disk_bytes) || fail "cap $cap MB: peer $i of $peers does not answer"
		say "cap $cap MB, peer $i of $peers: $last requests in all; du at most $((most[i] / 1000)) kB; at the end du $((d / 1000)) kB, status $((now / 1000)) kB"
		[ "${most[i]}" -le $((cap * 1000000)) ] || fail "cap $cap MB: peer $i of $peers took ${most[i]} bytes"
		[ $((20 * (now > d ? now - d : d - now))) -le "$d" ] || fail "cap $cap MB: status of peer $i says $now bytes, du $d"
		"$node" status --api 127.0.0.1:$((7910 + i)) | grep -q 'are kept free to work in' || fail "cap $cap MB: status of peer $i does not say that the disk is why nothing is fetched"
	done
	[ "$last" -lt $((100 * (cap + 20))) ] || fail "cap $cap MB: the world was too small"
	stop
	rm -rf "$dir"
}
for cap in "$@"; do try "$cap" 1; try "$cap" 3; done
say "passed"
