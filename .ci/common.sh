# common.sh - what the scripts have in common that run peers and watch them. They source it, say what they need (skip), and call begin.
#   $work           a directory of their own, with logs as $work/log*       KEEP=1   keep it
#   $node, $bench   echo-node and echo-bench: ECHO_NODE and ECHO_BENCH, or built now
#   pids            processes that are killed at the end; then undo, where a script has one, takes down what else there is
set -euo pipefail
cd "$(dirname "$0")/.."
say() { printf '%s: %3d s  %s\n' "$(basename "$0" .sh)" "$SECONDS" "$*"; }
skip() { say "SKIPPED: $*"; exit 0; }
fail() { say "FAILED: $*"; exit 1; }
pids=()
stop() {
	local p
	for p in "${pids[@]}"; do kill -CONT "$p" 2>/dev/null || true; kill -9 "$p" 2>/dev/null || true; done
	wait 2>/dev/null || true
	pids=()
}
undo() { :; }
end() {
	local status=$?
	stop
	undo
	[ "$status" = 0 ] || tail -n 5 "$work"/log* 2>/dev/null | cut -c1-600 || true
	if [ -n "${KEEP:-}" ]; then say "kept $work"; else rm -rf "$work"; fi
	exit "$status"
}
begin() {
	work=$(mktemp -d)
	trap end EXIT
	node=${ECHO_NODE:-} bench=${ECHO_BENCH:-}
	[ -n "$node" ] && [ -n "$bench" ] && return
	CGO_ENABLED=0 go build -o "$work/" ./cmd/...
	node=$work/echo-node bench=$work/echo-bench
}
# await SECONDS what command... - a condition, not a sleep
await() {
	local until=$((SECONDS + $1)) what=$2; shift 2
	until "$@" >"$work/last" 2>&1; do
		[ $SECONDS -lt $until ] || { cat "$work/last"; fail "$what"; }
		sleep 0.2
	done
}
# field JSON NAME - the first number or word of that name
field() { tr '\n' ' ' <<<"$1" | sed 's/,/,\n/g' | sed -n "s/.*\"$2\": *\"\{0,1\}\([A-Za-z0-9]*\).*/\1/p" | head -1; }
