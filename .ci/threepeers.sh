#!/bin/bash
# threepeers.sh - three echo-node processes on loopback crawl a world of 80 sites; one is killed with -9 in the middle and
# started again. Checks, by what the world's server saw: every page fetched, none twice but what the killed one had in
# flight (one page of a site, fetched in the 3 s before the kill), no site hurried, nothing that robots.txt forbids; and
# that each peer fetched, that a query to peer 3 finds what peers 1 and 2 fetched, and that all three end by --until-idle
# with exit 0, not before the crawl is done. Exit 0 passed, 1 failed.
#   PORT=17700    first of the five ports used     KEEP=1   keep data and logs
. "$(dirname "$0")/common.sh"
PORT=${PORT:-17700}
begin

report() { "$bench" report --admin "127.0.0.1:$PORT" "$@"; }
status() { "$node" status --api "127.0.0.1:$((PORT + $1))" --json; }
value() { field "$(status "$1")" "$2"; }
at_least() { [ "$(value "$1" "$2")" -ge "$3" ]; }
peer() { # peer N args... - start a peer in the background
	local n=$1; shift
	"$node" run --data "$work/peer$n" --api "127.0.0.1:$((PORT + n))" --listen /ip4/127.0.0.1/udp/0/quic-v1,/ip4/127.0.0.1/tcp/0 \
		--delay 400ms --allow-net 127.77.0.0/16 --until-idle 15s "$@" >>"$work/log$n" 2>&1 &
	eval "peer$n=$!"; pids+=($!)
}

"$bench" world --admin "127.0.0.1:$PORT" --seeds-out "$work/seeds" --gap 350ms >"$work/world" 2>&1 & pids+=($!)
await 20 "the world does not answer" report
peer 1
await 20 "peer 1 does not answer" status 1
peer 2 --join "$work/peer1/addrs"
peer 3 --join "$work/peer1/addrs"
for n in 1 2 3; do await 30 "peer $n does not see three members" at_least $n peers 3; done
id1=$(value 1 id) id2=$(value 2 id)
say "three peers: $(for n in 1 2 3; do value $n slices; done | tr '\n' ' ')slices"
began=$SECONDS
"$node" seed --api "127.0.0.1:$((PORT + 1))" --seeds "$work/seeds" --json >"$work/seeded" || fail "seed: $(cat "$work/seeded")"

await 60 "peer 2 fetches nothing" at_least 2 fetched 30
killed=$(date -u +%FT%T.%NZ)
kill -9 "$peer2"; wait "$peer2" 2>/dev/null || true
say "killed peer 2 after $((SECONDS - began)) s: $(report)"
sleep 3 # dead long enough to be noticed, within the 30 s of the promise
peer 2
await 120 "the crawl does not finish" report --whole --killed "$killed"
say "crawled after $((SECONDS - began)) s: $(report)"
for n in 1 2 3; do at_least $n fetched 1 || fail "peer $n fetched nothing"; done
ask3() { # several words: one is on pages of a few sites, of which a peer may own none
	local word
	for word in bacalhau aceituna lighthouse; do "$node" query "$word" --limit 100 --api "127.0.0.1:$((PORT + 3))" --json || return 1; done >"$work/answer"
	grep -q "$id1" "$work/answer" && grep -q "$id2" "$work/answer"
}
await 12 "a query to peer 3 does not find what peers 1 and 2 fetched" ask3
say "peer 3 answers with $(grep -o '"peer":' "$work/answer" | wc -l) hits, of all peers"
for n in 1 2 3; do
	p=peer$n; code=0; wait "${!p}" || code=$?
	[ $code = 0 ] || fail "peer $n ended with $code"
done
report --whole --killed "$killed" >/dev/null || fail "after the end: $(report)"
say "all three ended by --until-idle after $((SECONDS - began)) s; passed"
