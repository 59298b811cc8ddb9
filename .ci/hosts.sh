#!/bin/bash
# hosts.sh - five echo-node processes on five hosts of their own (network namespaces), a world of sites on a sixth, which
# all can reach at any time. While they crawl it:
#   1. one is killed with -9 and started again
#   2. two are cut off from three for 20 s: packets vanish, nothing is refused; then the cut heals
#   3. one is stopped (SIGSTOP) for 30 s and continued
#   4. each is restarted, one after another, by SIGTERM
# Checks, by what the world's server saw: every page fetched, at most 0.5 % twice (in flight at
# the kill, or fetched by an owner that was cut off and could tell nobody), no site hurried by
# anybody at any time, nothing that robots.txt forbids; requests came in every 5 s of the rolling restart; all five end
# by --until-idle with exit 0. Takes under five minutes. Exit 0 passed or skipped (said aloud), 1 failed.
#   KEEP=1   keep data and logs     DELAY_MS=1000 SITES=40 PAGES=165   of the crawl
. "$(dirname "$0")/common.sh"
DELAY_MS=${DELAY_MS:-1000} SITES=${SITES:-40} PAGES=${PAGES:-165}
[ "$(uname -s)" = Linux ] || skip "no Linux"
command -v ip >/dev/null || skip "no ip command (package iproute2)"
[ "$(id -u)" = 0 ] || skip "network namespaces need root"
ns=echo$$
ip netns add "$ns-probe" 2>/dev/null || skip "network namespaces cannot be made here"
ip netns del "$ns-probe"

undo() { for h in switch web 1 2 3 4 5; do ip netns del "$ns-$h" 2>/dev/null || true; done; }
begin

on() { local h=$1; shift; ip netns exec "$ns-$h" "$@"; }
# The swarm's network is 10.77.0.0/24, switched by bridge "near"; bridge "far" is where those go who are cut off. The web's is
# 10.79.0.0/24, by which the sites' 10.78.0.0/16 is reached; it is never cut.
hosts() {
	local h
	for h in switch web 1 2 3 4 5; do ip netns add "$ns-$h"; on $h ip link set lo up; done
	for h in near far web; do on switch ip link add name $h type bridge; on switch ip link set $h up; done
	plug web web 10.79.0.100
	on web ip route add local 10.78.0.0/16 dev lo
	for h in 1 2 3 4 5; do
		plug $h near 10.77.0.$h
		plug $h web 10.79.0.$h
		on $h ip route add 10.78.0.0/16 via 10.79.0.100
	done
}
# plug HOST BRIDGE ADDRESS - a cable from the host to the bridge
plug() {
	ip -n "$ns-$1" link add name "$2" type veth peer name "$2-$1" netns "$ns-switch"
	on switch ip link set "$2-$1" master "$2" up
	on "$1" ip addr add "$3/24" dev "$2"
	on "$1" ip link set "$2" up
}
report() { on web "$bench" report --admin 127.0.0.1:7790 "$@"; }
value() { field "$(on "$1" "$node" status --json)" "$2"; }
at_least() { [ "$(value "$1" "$2")" -ge "$3" ]; }
exactly() { [ "$(value "$1" "$2")" = "$3" ]; }
all_see_five() { # each is asked once, all at the same time: what this takes is time of the crawl
	local n
	for n in 1 2 3 4 5; do { on $n "$node" status --json >"$work/status$n" 2>/dev/null || : >"$work/status$n"; } & asked[n]=$!; done
	wait "${asked[@]}"
	for n in 1 2 3 4 5; do
		local s; s=$(<"$work/status$n")
		[ "$(field "$s" peers)" = 5 ] && [ "$(field "$s" slices_awaited)" = 0 ] || return 1
	done
}
peer() { # peer N args... - start a peer in the background; ip netns exec becomes it, so $! is its own (on, a function, would not)
	local n=$1; shift
	ip netns exec "$ns-$n" "$node" run --data "$work/peer$n" --listen "/ip4/10.77.0.$n/udp/4001/quic-v1,/ip4/10.77.0.$n/tcp/4001" --delay "${DELAY_MS}ms" \
		--contact ci@example.test --allow-net 10.78.0.0/16 --until-idle 15s "$@" >>"$work/log$n" 2>&1 &
	eval "peer$n=$!"; pids+=($!)
}
hosts
# A twentieth of the delay is what two requests' notes may differ by on a busy machine.
ip netns exec "$ns-web" "$bench" world --prefix 10.78 --port 80 --sites "$SITES" --pages "$PAGES" --seeds-out "$work/seeds" --gap "$((DELAY_MS * 19 / 20))ms" >"$work/world" 2>&1 & pids+=($!)
await 20 "the world does not answer" report
peer 1
await 20 "peer 1 does not answer" on 1 "$node" status
for n in 2 3 4 5; do peer $n --join "$work/peer1/addrs"; done
await 60 "the five do not see each other" all_see_five
on 1 "$node" seed --api-token-file "$work/peer1/api.token" --seeds "$work/seeds" --json >"$work/seeded" || fail "seed: $(cat "$work/seeded")"
began=$SECONDS
twice=$(($(field "$(report --json)" expected) / 200))
say "five hosts, seeded; at most $twice pages may be fetched twice"

await 60 "peer 2 fetches nothing" at_least 2 fetched 30
kill -9 "$peer2"; wait "$peer2" 2>/dev/null || true
sleep 5 # it is dead for a while
peer 2
await 60 "the five do not see each other after the kill" all_see_five
say "killed and restarted peer 2: $(report)"

cut=$SECONDS
for n in 4 5; do on switch ip link set near-$n master far; done
await 20 "the three do not notice the cut" exactly 1 peers 3
await 20 "the two do not notice the cut" exactly 4 peers 2
sleep $((20 - (SECONDS - cut) > 0 ? 20 - (SECONDS - cut) : 0))
for n in 4 5; do on switch ip link set near-$n master near; done
say "cut 4 and 5 off for $((SECONDS - cut)) s: $(report)"
await 60 "the five do not see each other after the cut" all_see_five

kill -STOP "$peer3"
stop=$SECONDS
await 30 "the four do not notice that the third does nothing" exactly 1 peers 4
sleep $((30 - (SECONDS - stop)))
kill -CONT "$peer3"
say "stopped peer 3 for 30 s: $(report)"
await 60 "the five do not see each other after the stop" all_see_five

rolling=$SECONDS rolling_at=$(date -u +%FT%TZ)
for n in 1 2 3 4 5; do
	p=peer$n; kill -TERM "${!p}"; code=0; wait "${!p}" || code=$?
	[ $code = 0 ] || fail "peer $n ended with $code when it was asked to"
	peer $n
	await 60 "the five do not see each other after the restart of $n" all_see_five
done
longest=$(report --since "$rolling_at" | sed -n 's/^longest_pause_ms //p')
say "restarted all, one after another, in $((SECONDS - rolling)) s, longest pause $longest ms: $(report)"
if report --whole >/dev/null 2>&1; then fail "the crawl was over before the rolling restart was: nothing is shown; give more PAGES"; fi

await 150 "the crawl does not finish" report --whole --twice $twice
say "crawled after $((SECONDS - began)) s: $(report)"
[ "$longest" -le 5000 ] || fail "no request for $longest ms during the rolling restart"
for n in 1 2 3 4 5; do
	p=peer$n; code=0; wait "${!p}" || code=$?
	[ $code = 0 ] || fail "peer $n ended with $code"
done
report --whole --twice $twice >/dev/null || fail "after the end: $(report)"
say "all five ended by --until-idle; longest pause in the rolling restart $longest ms; passed"
