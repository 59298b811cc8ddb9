#!/bin/sh
# entrypoint.sh - gives a container what every peer needs, then becomes echo-node.
#   ECHO_API_TOKEN_FILE  the API's token; made here when there is none (ECHO_API_TOKEN, or 32 random bytes)
#   ECHO_JOIN_API        API of a peer to join, as in http://peer1:7700: its id is asked there, so nobody has to copy it
set -eu
if [ "${1:-}" != run ]; then exec echo-node "$@"; fi

token=${ECHO_API_TOKEN_FILE:-/shared/token}
if [ ! -s "$token" ]; then
	umask 077
	tmp=$(mktemp "$token.XXXXXX")
	if [ -n "${ECHO_API_TOKEN:-}" ]; then
		printf '%s\n' "$ECHO_API_TOKEN" > "$tmp"
	else
		od -An -tx1 -v -N32 /dev/urandom | tr -d ' \n' > "$tmp"
	fi
	ln "$tmp" "$token" 2>/dev/null || true # several peers may start at once: the first wins
	rm -f "$tmp"
fi
# The peer's own flags are not for it: a program is told a thing once.
unset ECHO_API_TOKEN

if [ -n "${ECHO_JOIN_API:-}" ]; then
	host=${ECHO_JOIN_API#*://}
	host=${host%%:*}
	tries=0
	while :; do
		id=$(echo-node status --api "$ECHO_JOIN_API" --json 2>/dev/null | sed -n 's/.*"id":"\([A-Za-z0-9]*\)".*/\1/p') || id=
		if [ -n "$id" ]; then
			set -- "$@" --join "/dns4/$host/udp/4001/quic-v1/p2p/$id" --join "/dns4/$host/tcp/4001/p2p/$id"
			break
		fi
		tries=$((tries + 1))
		# A peer that was in the swarm before finds it by itself.
		if [ "$tries" -ge 5 ] && [ -e /data/identity.key ]; then break; fi
		if [ "$tries" -ge 120 ]; then
			echo "entrypoint: $ECHO_JOIN_API does not answer" >&2
			exit 1
		fi
		sleep 1
	done
fi
unset ECHO_JOIN_API
exec echo-node "$@"
