#!/bin/bash
# make.sh - makes a data directory with the program of an older commit, and the list of what is in it.
#   make.sh BIN OUT    BIN has that commit's echo-node, echo-bench, and list and people (list.go and people.go here); OUT is made
# Two peers of a swarm with one replica crawl a world of eight sites and follow people of two services. The second peer
# is killed and stays away, so that the first keeps the links to its slices in the outbox. Both directories are kept: one was closed, one was not.
set -euo pipefail
bin=$1 out=$2 a=127.0.0.1:42191 b=127.0.0.1:42192
mkdir -p "$out"; cd "$out"
pids=()
trap 'kill -9 "${pids[@]}" 2>/dev/null || true' EXIT
await() { for _ in {1..300}; do "$@" >last 2>&1 && return; sleep 0.2; done; echo "waited in vain: $*"; cat last; exit 1; }
of() { "$bin/echo-node" status --api "$1" --json | tr ',{' '\n\n' | sed -n "s/\"$2\"://p" | head -1; }
least() { [ "$(of "$1" "$2")" -ge "$3" ]; }

"$bin/echo-bench" world --prefix 127.76 --port 42180 --admin 127.0.0.1:42181 --sites 8 --pages 3 --words 60 & pids+=($!)
"$bin/people" & pids+=($!)
await test -s people
for n in {1..8}; do echo "http://127.76.0.$n:42180/"; done >sites
peer() {
	"$bin/echo-node" run --data "$1" --api "$2" --listen /ip4/127.0.0.1/tcp/0 --allow-net 127.76.0.0/16 --delay 100ms --revisit 1h --orphan-after 24h \
		--leave 0s --community pt --follow all --lists --media --token-file tokens.yaml --contact test@example.test \
		--bluesky-view http://127.76.255.2:42183 --bluesky-directory http://127.76.255.2:42183 "${@:3}" >>"log-$1" 2>&1 & pids+=($!)
}
peer a $a --swarm old --replicas 1 --slice-bits 6 --fanout 8; first=$!
await least $a peers 1
peer b $b --join a/addrs; second=$!
await least $a peers 2; await least $b peers 2; await least $b slices 10
"$bin/echo-node" seed --api $a --seeds people --json >seeded
sleep "${WAIT:-60}" # the people are read
kill -9 $second     # it owns half of the slices, and is away from now on
"$bin/echo-node" seed --api $a --seeds sites --json >>seeded || true
await least $a fetched 15; await least $a outbox 2
sleep 20
while read -r who; do # those of the second peer are refused
	"$bin/echo-node" override "$who" in --by rui --why "born in Viseu" --api $a --json || true
	"$bin/echo-node" override "$who" out --by ana --why "a machine" --api $a --json || true
done <people
"$bin/echo-node" status --api $a
"$bin/echo-node" export -o export.jsonl --api $a || true # without the slices of the second peer
kill -TERM $first; wait $first || echo "ended with $?"
for peer in a b; do # of copies: to list is to open
	cp -a $peer copy
	"$bin/list" copy >$peer.jsonl
	rm -r copy
done
cut -d: -f1 a.jsonl | sort | uniq -c
rm -f a/control.sock b/control.sock
tar -c --owner=0 --group=0 --numeric-owner a b | zstd -q -19 >olddata.tar.zst
gzip -9nf a.jsonl b.jsonl export.jsonl
ls -l ./*.gz ./*.zst
