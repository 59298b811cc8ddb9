#!/bin/bash
# compose.sh - builds the image, brings up docker-compose.yml, waits until three peers have crawled the demo world whole
# (as the world saw it), asks each peer the same questions on its published port, and takes everything down again.
# Exit 0 passed or skipped (says so), 1 failed.
#   STANDINS=auto|never   auto: where a base image is not here and cannot be pulled, make a local stand-in from this machine's
#                         own Go and system files; it is removed afterwards. The Dockerfile is used as it is.
#   BUILD=yes|no          no: test the image echo-node:local as it is
set -euo pipefail
cd "$(dirname "$0")/.."
say() { printf 'compose: %s\n' "$*"; }
skip() { say "SKIPPED: $*"; exit 0; }
command -v docker >/dev/null || skip "no docker"
docker version --format '{{.Server.Version}}' >/dev/null 2>&1 || skip "no Docker engine answers"
if docker compose version >/dev/null 2>&1; then compose=(docker compose); elif command -v docker-compose >/dev/null; then compose=(docker-compose); else skip "no compose"; fi
say "engine $(docker version --format '{{.Server.Version}}'), $("${compose[@]}" version --short)"

work=$(mktemp -d); made=(); up= built=
down() {
	status=$?
	if [ "$status" != 0 ] && [ -n "$up" ]; then "${compose[@]}" ps || true; "${compose[@]}" logs --tail 40 || true; fi
	[ -z "$up" ] || "${compose[@]}" down -v --timeout 20 >"$work/down.log" 2>&1 || { cat "$work/down.log"; status=1; }
	[ -z "$built" ] || docker rmi echo-node:local >/dev/null || true
	[ -z "$built" ] || docker image prune -f --filter label=echo-node.stage=build >/dev/null || true # older builders leave the first stage
	[ ${#made[@]} = 0 ] || docker rmi "${made[@]}" >/dev/null || true
	rm -rf "$work"
	exit "$status"
}
trap down EXIT

# root DIR COMMAND... - a root directory in which these commands run
root() {
	local dir=$1 c f; shift
	mkdir -p "$dir"/{tmp,etc,root,proc,sys,dev,usr/bin,usr/sbin,usr/lib,usr/local/bin,var/tmp}; chmod 1777 "$dir/tmp" "$dir/var/tmp"
	for l in bin sbin lib lib64; do [ -L "/$l" ] && cp -a "/$l" "$dir/" && mkdir -p "$dir/$(readlink "/$l")"; done
	for c in "$@"; do
		f=$(readlink -f "$(command -v "$c")"); mkdir -p "$dir/usr/bin"
		cp "$f" "$dir/usr/bin/$c"
		ldd "$f" 2>/dev/null | grep -o '/[^ ]*' | while read -r l; do mkdir -p "$dir/$(dirname "$l")"; cp -Ln "$l" "$dir/$l" || true; done
	done
	printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n' > "$dir/etc/passwd"
	printf 'root:x:0:\nnogroup:x:65534:\n' > "$dir/etc/group"
	printf 'hosts: files dns\n' > "$dir/etc/nsswitch.conf"
}

# compiled FILE - the list of what this machine's build cache has of the image's build (same flags; a cache knows no paths then), compiled if
# need be: the stand-in carries it, so that nothing is compiled twice, and the second time on the slow file system of a build
compiled() {
	CGO_ENABLED=0 go list -trimpath -deps -export -f '{{.Export}}' ./cmd/echo-node ./cmd/echo-bench | grep . > "$1"
	sed 's|.*/\([0-9a-f]*\)-d$|\1|' "$1" > "$1.ids"
	grep -rlF -f "$1.ids" --include='*-a' "$GOCACHE" >> "$1"
}

standin() {
	local image=$1 dir=$work/root
	rm -rf "$dir"
	case $image in
	golang:*)
		# What the image carries instead of a network: of each module that the build needs the files, of all others what go.mod's graph says of them.
		CGO_ENABLED=0 go list -deps -f '{{with .Module}}{{.Dir}}{{end}}' ./cmd/... | sort -u | grep "^$GOMODCACHE/" | sed 's|^/||' > "$work/modules"
		root "$dir" sh bash env cat cp mkdir chmod rm ls
		mkdir -p "$dir/etc/ssl/certs"; cp -L /etc/ssl/certs/ca-certificates.crt "$dir/etc/ssl/certs/"
		{ tar -C "$dir" -c --owner=0 --group=0 .
		} > "$work/root.tar"
		tar -C / --append -f "$work/root.tar" --exclude=testdata --exclude='*_test.go' --exclude="${GOROOT#/}/test" --exclude="${GOROOT#/}/doc" --transform "s|^${GOROOT#/}|usr/local/go|" "${GOROOT#/}"
		tar -C / --append -f "$work/root.tar" --exclude=testdata --exclude='*_test.go' --transform "s|^${GOMODCACHE#/}|go/pkg/mod|" -T "$work/modules"
		tar -C / --append -f "$work/root.tar" --exclude='*.zip' --exclude=sumdb --transform "s|^${GOMODCACHE#/}|go/pkg/mod|" "${GOMODCACHE#/}/cache/download"
		compiled "$work/compiled"
		tar -C / --append -f "$work/root.tar" --transform "s|^${GOCACHE#/}|root/.cache/go-build|" -T <(sed 's|^/||' "$work/compiled")
		docker import --change 'ENV PATH=/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin GOPATH=/go GOROOT=/usr/local/go GOPROXY=off GOSUMDB=off GOTOOLCHAIN=local' "$work/root.tar" "$image" >/dev/null ;;
	debian:*)
		root "$dir" sh bash env cat cp mkdir rm ls ln od tr sed head mktemp sleep id
		tar -C "$dir" -c --owner=0 --group=0 . | docker import --change 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' - "$image" >/dev/null ;;
	*) say "no stand-in is known for $image"; return 1 ;;
	esac
	rm -f "$work/root.tar"
	made+=("$image")
}

GOROOT=$(go env GOROOT) GOMODCACHE=$(go env GOMODCACHE) GOCACHE=$(go env GOCACHE)
base_images() {
	local image
	for image in $(sed -n 's/^FROM \([^ ]*\).*/\1/p' Dockerfile); do
		if docker image inspect "$image" >/dev/null 2>&1; then say "$image is here"; continue; fi
		if timeout 60 docker pull -q "$image" >/dev/null 2>&1; then say "$image pulled"; continue; fi
		[ "${STANDINS:-auto}" = auto ] || skip "$image cannot be pulled"
		say "$image cannot be pulled: making a stand-in from this machine's files"
		standin "$image"
	done
}

export ECHO_DELAY=${ECHO_DELAY:-200ms} COMPOSE_PROJECT_NAME=echocompose$$ ECHO_API_TOKEN=
ECHO_API_TOKEN=$(od -An -tx1 -N16 /dev/urandom | tr -d ' \n')
(umask 077; printf '%s\n' "$ECHO_API_TOKEN" > "$work/token")
node=${ECHO_NODE:-$work/echo-node}; [ -n "${ECHO_NODE:-}" ] || CGO_ENABLED=0 go build -o "$node" ./cmd/echo-node
began=$(date +%s)
if [ "${BUILD:-yes}" = yes ]; then
	base_images
	built=1
	# one service is enough: all have the same image
	"${compose[@]}" build world >"$work/build.log" 2>&1 || { tail -30 "$work/build.log"; exit 1; }
fi
up=1
say "image ready in $(($(date +%s) - began)) s: $(docker image inspect --format '{{.Size}}' echo-node:local | awk '{printf "%.1f MB", $1/1e6}')"
began=$(date +%s)
"${compose[@]}" up -d >"$work/up.log" 2>&1 || { cat "$work/up.log"; exit 1; }
ask() { local n=$1; shift; "$node" "$@" --api "127.0.0.1:770$n" --api-token-file "$work/token" --json; }

# wait until SECONDS what command... - a condition, not a sleep
await() {
	local end=$(($(date +%s) + $1)) what=$2; shift 2
	until "$@" >"$work/last" 2>&1; do
		[ "$(date +%s)" -lt "$end" ] || { say "FAILED: $what"; cat "$work/last"; exit 1; }
		sleep 1
	done
}
healthy() { [ "$(docker inspect --format '{{.State.Health.Status}}' "$("${compose[@]}" ps -q "$1")")" = healthy ]; }
for p in peer1 peer2 peer3; do await 120 "$p is not healthy" healthy "$p"; done
say "three peers healthy after $(($(date +%s) - began)) s"
[ "$("${compose[@]}" exec -T peer1 id -u)" != 0 ] || { say "FAILED: runs as root"; exit 1; }
if "$node" status --api 127.0.0.1:7701 >/dev/null 2>&1; then say "FAILED: the API answers without the token"; exit 1; fi

report() { "${compose[@]}" exec -T world echo-bench report "$@"; }
await 240 "the world was not crawled whole" report --whole
say "crawled after $(($(date +%s) - began)) s: $(report)"
for n in 1 2 3; do
	fetched=$(ask $n status | sed -n 's/.*"fetched":\([0-9]*\).*/\1/p')
	say "peer$n fetched $fetched"
	[ "${fetched:-0}" -gt 0 ] || { say "FAILED: peer$n fetched nothing"; exit 1; }
done

# The same hits, in the same order, whoever is asked.
hits() { ask "$1" query "$2" --limit 100 > "$work/answer" && grep -o '"key":"[^"]*"' "$work/answer"; }
agree() {
	local n
	for n in 1 2 3; do hits $n "$1" > "$work/hits$n" || return 1; done
	[ -s "$work/hits1" ] && cmp "$work/hits1" "$work/hits2" && cmp "$work/hits1" "$work/hits3"
}
for word in bacalhau aceituna lighthouse; do
	await 60 "the peers do not agree on $word" agree "$word"
	say "$word: $(wc -l < "$work/hits1") hits, equal at all three peers"
done

# A restart keeps what there was.
before=$(ask 2 status | sed -n 's/.*"records":\([0-9]*\).*/\1/p')
"${compose[@]}" restart peer2 >/dev/null 2>&1
await 120 "peer2 is not healthy after a restart" healthy peer2
same() { [ "$(ask 2 status | sed -n 's/.*"records":\([0-9]*\).*/\1/p')" -ge "$before" ]; }
await 60 "peer2 lost records in a restart" same
await 60 "the world was not crawled exactly once after a restart" report --whole
say "peer2 restarted with its $before records; passed"
