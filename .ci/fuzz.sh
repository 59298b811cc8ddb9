#!/bin/bash
# fuzz.sh [SECONDS] - runs every fuzz function of the module, each for its share of SECONDS (default 600), and ends with a
# table: executions, time, inputs of the corpus, what was found; also when it is interrupted. What finds new paths is kept from run to run in CACHE; of
# that, up to KEEP inputs of at most 4 KiB a function, the newest, are put into the package's testdata/fuzz, to be kept for good
# and tried by every plain go test. Exit 0: nothing was found. 1: an input fails; go test names it, and has put it in testdata.
#   CACHE=DIR     where Go keeps inputs that it found interesting; default: go's own cache
#   KEEP=0        inputs of each function to add to testdata
#   ONLY=REGEXP   the functions to run, as package/Function, for example 'node/.*|dht/wire/FuzzReadRequest'
#   JOBS=2        how many processes of one function run at once
set -uo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-600} keep=${KEEP:-0} only=${ONLY:-.} jobs=${JOBS:-2}
out=$(mktemp -d); trap 'rm -rf "$out"' EXIT

# Each function once, with its package.
grep -rnoE '^func Fuzz[A-Za-z0-9_]*\(f \*testing\.F\)' --include='*_test.go' . | sed -E 's|^\./([^:]*)/[^/:]*:[0-9]+:func (Fuzz[A-Za-z0-9_]*).*|\1 \2|' | sort -u |
	awk -v only="$only" '($1 "/" $2) ~ only' >"$out/all"
n=$(wc -l <"$out/all")
[ "$n" -gt 0 ] || { echo "fuzz: no fuzz function matches $only" >&2; exit 1; }
share=$((seconds / n)); [ "$share" -ge 1 ] || share=1
cache=${CACHE:-$(go env GOCACHE)/fuzz}; mkdir -p "$cache"; cache=$(cd "$cache" && pwd)
module=$(go list -m)
echo "fuzz: $n functions, $share s each, $jobs processes, cache $cache"

report() {
	printf '\n%-34s %-26s %14s %8s %8s %9s  %s\n' package function executions seconds cached testdata result
	while read -r p f e t k d r; do printf '%-34s %-26s %14s %8s %8s %9s  %s\n' "$p" "$f" "$e" "$t" "$k" "$d" "$r"; done <"$out/table"
	printf '%s executions of %s functions in %s hours, corpus %s inputs of %s, testdata %s inputs\n' "$sum" "$(wc -l <"$out/table")" "$(awk -v s="$spent" 'BEGIN { printf "%.2f", s / 3600 }')" \
		"$(find "$cache" -type f | wc -l)" "$(du -sh "$cache" | cut -f1)" "$(find . -path '*/testdata/fuzz/*' -type f | wc -l)"
	for f in "$out"/found.*; do [ -e "$f" ] && { echo "--- $f" | sed "s|$out/||"; tail -30 "$f"; }; done
}

failed=0 sum=0 spent=0 built=
: >"$out/table"
trap 'report; exit 1' INT TERM
while read -r pkg fn; do
	log=$out/log
	begun=$(date +%s)
	# One binary a package. Only our packages and the parsers they lean on count coverage: go test -fuzz has everything count,
	# and each execution then pays for the counters of a whole program. A test that hangs is a finding.
	if [ "$built" != "$pkg" ]; then
		built=$pkg; rm -f "$out/test"
		go test -c "-gcflags=$module/...=-d=libfuzzer" -gcflags=golang.org/x/net/...=-d=libfuzzer -o "$out/test" "./$pkg" >"$log" 2>&1 || true
		begun=$(date +%s) # compiling does not count as fuzzing
	fi
	# To make an input smaller that is worth keeping, 300 tries; go's default is a minute, in which nothing new is tried.
	if [ ! -x "$out/test" ]; then
		result="does not compile"; failed=1
	else
		mkdir -p "$cache/$module/$pkg"
		if (cd "$pkg" && "$out/test" -test.run '^$' -test.fuzz "^$fn\$" -test.fuzztime "${share}s" -test.fuzzminimizetime 300x -test.parallel "$jobs" -test.timeout $((share * 4 + 600))s -test.fuzzcachedir "$cache/$module/$pkg") >"$log" 2>&1; then
			result=ok
		elif grep -qx '    context deadline exceeded' "$log" && ! grep -qE 'Failing input|panic|exit status' "$log"; then
			result=ok # Go's coordinator ended at its time, and calls it a failure now and then (go.dev/issue/75804, mended in Go 1.27)
		else
			result=FOUND; failed=1; grep -E 'Failing input|^ +--- FAIL|_test.go:|panic:' "$log" | head -5 | sed "s|^|$pkg/$fn: |"; cp "$log" "$out/found.$fn"
		fi
	fi
	took=$(($(date +%s) - begun))
	execs=$(grep -oE 'execs: [0-9]+' "$log" | tail -1 | grep -oE '[0-9]+'); execs=${execs:-0}
	kept=$(find "$cache/$module/$pkg/$fn" -type f 2>/dev/null | wc -l)
	added=0
	if [ "$keep" -gt 0 ] && [ "$result" = ok ]; then
		have=$(find "$pkg/testdata/fuzz/$fn" -type f 2>/dev/null | wc -l)
		for f in $(find "$cache/$module/$pkg/$fn" -type f -size -5 -printf '%T@ %p\n' 2>/dev/null | sort -rn | cut -d' ' -f2); do
			[ $((have + added)) -lt "$keep" ] || break
			[ -e "$pkg/testdata/fuzz/$fn/${f##*/}" ] && continue
			mkdir -p "$pkg/testdata/fuzz/$fn" && cp "$f" "$pkg/testdata/fuzz/$fn/" && added=$((added + 1))
		done
	fi
	sum=$((sum + execs)) spent=$((spent + took))
	printf '%s %s %s %s %s %s %s\n' "$pkg" "$fn" "$execs" "$took" "$kept" "$(find "$pkg/testdata/fuzz/$fn" -type f 2>/dev/null | wc -l)" "$result" >>"$out/table"
done <"$out/all"

report
exit $failed
