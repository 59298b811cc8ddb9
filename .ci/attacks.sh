#!/bin/bash
# attacks.sh [before COMMIT] - runs the test of each attack that once worked, and prints a table: attack, test, result. A test
# of the list that there is not is MISSING. Tests named TestAttack... that are of no attack of the list are run, too.
# Exit 0: all pass. 1: one fails or is missing.
#   before COMMIT   puts each test's file into a checkout of COMMIT, in a temporary directory, and runs it there: an attack
#                   worked then, so its test must fail. "does not compile" is a test of what that commit does not have.
#   ONLY=REGEXP     the tests to run
#   KEEP=DIR        the whole output of each test that fails stays there
set -uo pipefail
cd "$(dirname "$0")/.."
only=${ONLY:-.} mode=${1:-now} commit=${2:-6e7ad9b}
# attack | package | test, in the order of the programs of the attacks
list=$(cat <<'LIST'
a feed with 20,000 namespaces|crawler/web|TestAttackFeedNamespaces
a feed with 60,000 nested elements|crawler/web|TestAttackFeedDepth
a Key kills one peer after another|node|TestAttackPoisonKey
15 MB of text without an end|crawler/web|TestAttackSingleLineText
a stranger's Configs take all slices|node|TestAttackStolenSlices
a Config of epoch 2^62 is final|node|TestAttackEpoch
what was learned is believed after a restart|node|TestAttackPoisonedDirectory
a member has every row dropped|node|TestAttackMemberDrops
an announced address is dialled for hours|dht|TestAttackVictimAddress
streams of strangers stop every lease|dht|TestAttackSlowStreams
a member replaces a record by reconcile|node|TestAttackReconcilePoison
a stranger overrides in the operator's name|node|TestAttackStrangerOverrules
a stranger reads every record|node|TestAttackStrangerReads
the second address is asked without a turn|crawler/fetch|TestAttackSecondAddress
a mail server gets our request|crawler/fetch|TestAttackMailPort
gzip members without content|crawler/fetch|TestAttackEmptyGzipMembers
1.46 GiB by XML depth|crawler/web|TestAttackFeedDepth
1.09 GiB by attributes|crawler/web|TestAttackAttributes
10 s by headings|crawler/web|TestAttackHeadings
40 s by a single line|crawler/web|TestAttackSingleLineText
LIST
)
module=$(go list -m)
tmp=$(mktemp -d)
clean() { [ -z "${tree:-}" ] || git worktree remove --force "$tree" 2>/dev/null; rm -rf "$tmp"; }
trap clean EXIT
grep -rnoE '^func TestAttack[A-Za-z0-9_]*' --include='*_test.go' . | sed -E 's|^\./(.*)/([^/]*):[0-9]+:func (.*)$|\1 \3 \2|' | sort -u >"$tmp/there"
# Every test once, the list's first.
{
	printf '%s\n' "$list" | awk -F'|' '{ print $2 " " $3 }'
	awk '{ print $1 " " $2 }' "$tmp/there"
} | awk -v only="$only" '!seen[$0]++ && $2 ~ only' >"$tmp/run"

# compiles PACKAGE - whether it does in the old checkout, with the files for tests, new since, that it turns out to need.
compiles() {
	local pkg=$1 dir x f tries
	for tries in 1 2 3 4 5 6; do
		(cd "$tree" && go vet "./$pkg") >"$tmp/out" 2>&1 && return 0
		f=
		if dir=$(grep -m1 -oE "package $module/[a-z0-9/]*test[; ]" "$tmp/out" | sed -E "s|package $module/(.*).|\\1|") && [ -n "$dir" ] && [ ! -e "$tree/$dir" ]; then
			mkdir -p "$tree/$dir" && cp -r "$dir/." "$tree/$dir/"
			continue
		fi
		for x in $(grep -oE 'undefined: [A-Za-z0-9_]+' "$tmp/out" | cut -d' ' -f2 | sort -u); do
			for f in $(git diff --name-only --diff-filter=AM "$commit" HEAD -- "$pkg" | grep -E "^$pkg/[^/]*_test\.go$"); do
				grep -qE "^(func|type|var|const) $x\b|^func \([^)]*\) $x\(|^	$x +(=|[a-z])" "$f" && ! cmp -s "$f" "$tree/$f" && cp "$f" "$tree/$f" && continue 3
			done
		done
		return 1
	done
	return 1
}

# result PACKAGE TEST
result() {
	local file; file=$(awk -v p="$1" -v t="$2" '$1 == p && $2 == t { print $3; exit }' "$tmp/there")
	[ -n "$file" ] || { echo MISSING; return; }
	if [ "$mode" = before ]; then
		cp "$1/$file" "$tree/$1/$file"
		if ! compiles "$1"; then
			echo "does not compile: $(grep -oE '(undefined: |unknown field |has no field or method |no required module|not enough arguments|too many arguments|assignment mismatch|cannot use).{0,70}' "$tmp/out" | sort -u | head -4 | tr '\n' ';')"
			(cd "$tree" && git checkout -q -- . && git clean -qfd)
			return
		fi
	fi
	if (cd "${tree:-.}" && go test "./$1" -count=1 -timeout 300s -run "^$2\$" -v) >"$tmp/out" 2>&1; then
		if grep -q -- '--- SKIP' "$tmp/out"; then echo skipped; else echo passes; fi
	elif grep -qE '^FAIL.*\[(build|setup) failed\]' "$tmp/out"; then echo "does not compile"
	elif grep -qE 'panic: test timed out|signal: killed|fatal error: ' "$tmp/out"; then echo "fails: $(grep -m1 -E 'panic: test timed out|signal: killed|fatal error: ' "$tmp/out")"
	else # with what it says first: before, that must be the attack
		if [ "$mode" = before ]; then echo "fails: $(grep -m1 -oE "[a-z_0-9]+\.go:[0-9]+: .*" "$tmp/out" | cut -c 1-160)"; else echo fails; fi
		cp "$tmp/out" "$tmp/failed.$2"; [ -z "${KEEP:-}" ] || cp "$tmp/out" "$KEEP/$2"
	fi
	if [ "$mode" = before ]; then (cd "$tree" && git checkout -q -- . && git clean -qfd); fi
}

if [ "$mode" = before ]; then
	tree=$tmp/tree
	git worktree add -q --detach "$tree" "$commit" || exit 1
fi
while read -r pkg test; do
	printf '%s %s %s\n' "$pkg" "$test" "$(result "$pkg" "$test")" >>"$tmp/results"
	tail -1 "$tmp/results" >&2
done <"$tmp/run"

bad=0
row() { printf '%-44s %-50s %s\n' "$1" "$2" "$3"; }
row attack test result
told=" "
while IFS='|' read -r attack pkg test; do
	r=$(awk -v p="$pkg" -v t="$test" '$1 == p && $2 == t { $1 = $2 = ""; print substr($0, 3) }' "$tmp/results")
	[ -n "$r" ] || continue # not of ONLY
	row "$attack" "$pkg $test" "$r"; told="$told$pkg/$test "
	case "$mode $r" in now\ passes | before\ fails* | before\ does*) ;; *) bad=1 ;; esac
done <<<"$list"
while read -r pkg test r; do
	case "$told" in *" $pkg/$test "*) continue ;; esac
	row "(of our own trying)" "$pkg $test" "$r"
	[ "$mode" = before ] || [ "$r" = passes ] || bad=1
done <"$tmp/results"
for f in "$tmp"/failed.*; do [ "$mode" = now ] && [ -e "$f" ] && { echo "--- ${f##*.}"; tail -20 "$f"; }; done
exit $bad
