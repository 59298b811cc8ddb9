#!/bin/bash
# maxdisk.sh [MB...] - crawls a world that is too large for it with --max-disk of so many MB (20 and 100), by one peer and by a
# swarm of three, until nothing is fetched any more. Checks: what du says of a data directory is never above the cap;
# status agrees with du within 5 % at the end, and says why nothing is fetched; every peer goes on running.
# Takes about a minute for each 100 MB. Exit 0 passed, 1 failed.     KEEP=1   keep the logs
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- 20 100
say() { printf 'maxdisk: %4d s  %s\n' "$SECONDS" "$*"; }
fail() { say "FAILED: $*"; exit 1; }
work=$(mktemp -d); pids=()
stop() {
	for p in "${pids[@]}"; do kill -9 "$p" 2>/dev/null || true; done
	wait 2>/dev/null || true
	pids=()
}
end() {
	status=$?
	stop
	[ "$status" = 0 ] || tail -n 5 "$work"/*/log* 2>/dev/null | cut -c1-600 || true
	if [ -n "${KEEP:-}" ]; then say "kept $work"; else rm -rf "$work"; fi
	exit "$status"
}
trap end EXIT
node=${ECHO_NODE:-} bench=${ECHO_BENCH:-}
if [ -z "$node" ] || [ -z "$bench" ]; then CGO_ENABLED=0 go build -o "$work/" ./cmd/...; node=$work/echo-node bench=$work/echo-bench; fi
admin=127.0.0.1:7795
pages() { "$bench" report --admin $admin --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["report"]["requests"])'; }
field() { "$node" status --json --api "$1" | python3 -c "import json,sys; print(json.load(sys.stdin)$2)"; }
# used DIR - the allocated bytes of it. Files come and go while du looks.
used() { local b; b=$(du -s --block-size=1 "$1" 2>/dev/null | cut -f1) || true; echo "${b:-0}"; }

# try CAP PEERS
try() {
	local cap=$1 peers=$2 dir=$work/$1-$2 i last now still most=() d join=() deadline
	mkdir -p "$dir"
	"$bench" world --plain --prefix 127.79 --sites 100 --pages $((cap + 20)) --words 1500 --admin $admin --seeds-out "$dir/seeds" >"$dir/log.world" 2>&1 & pids+=($!)
	deadline=$((SECONDS + 60))
	until pages >/dev/null 2>&1; do [ $SECONDS -lt $deadline ] || fail "the world does not answer"; sleep 0.2; done
	for i in $(seq "$peers"); do
		"$node" run --data "$dir/peer$i" --listen /ip4/127.0.0.1/tcp/$((7900 + i)) --api 127.0.0.1:$((7910 + i)) --delay 5ms --contact ci@example.test \
			--allow-net 127.79.0.0/16 --max-disk "${cap}MB" --seeds "$dir/seeds" "${join[@]}" >"$dir/log.peer$i" 2>&1 & pids+=($!)
		most[i]=0
		[ "$i" -gt 1 ] && continue
		deadline=$((SECONDS + 60))
		until [ -s "$dir/peer1/addrs" ]; do [ $SECONDS -lt $deadline ] || fail "the first peer does not start"; sleep 0.2; done
		join=(--join "$(head -n 1 "$dir/peer1/addrs")")
	done
	last=0 still=$SECONDS deadline=$((SECONDS + 120 + 6 * cap))
	while [ $((SECONDS - still)) -lt 15 ]; do
		[ $SECONDS -lt $deadline ] || fail "cap $cap MB, $peers peers: they still fetch"
		for i in $(seq "$peers"); do
			d=$(used "$dir/peer$i"); [ "$d" -le "${most[i]}" ] || most[i]=$d
			[ "$d" -le $((cap * 1000000)) ] || find "$dir/peer$i" -type f -printf '%T+ %k kB %P\n' 2>/dev/null | sort >"$dir/log.over$i" || true
		done
		now=$(pages); [ "$now" = "$last" ] || { last=$now still=$SECONDS; }
		sleep 0.3
	done
	for i in $(seq "$peers"); do
		d=$(used "$dir/peer$i"); now=$(field 127.0.0.1:$((7910 + i)) '["disk_bytes"]') || fail "cap $cap MB: peer $i of $peers does not answer"
		say "cap $cap MB, peer $i of $peers: $last requests in all; du at most $((most[i] / 1000)) kB; at the end du $((d / 1000)) kB, status $((now / 1000)) kB"
		[ "${most[i]}" -le $((cap * 1000000)) ] || fail "cap $cap MB: peer $i of $peers took ${most[i]} bytes"
		[ $((20 * (now > d ? now - d : d - now))) -le "$d" ] || fail "cap $cap MB: status of peer $i says $now bytes, du $d"
		"$node" status --api 127.0.0.1:$((7910 + i)) | grep -q 'are kept free to work in' || fail "cap $cap MB: status of peer $i does not say that the disk is why nothing is fetched"
	done
	[ "$last" -lt $((100 * (cap + 20))) ] || fail "cap $cap MB: the world was too small"
	stop
	rm -rf "$dir"/peer*
}
for cap in "$@"; do try "$cap" 1; try "$cap" 3; done
say "passed"
