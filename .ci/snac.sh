#!/bin/bash
# snac.sh - a real server of the Fediverse, snac 2.75 of Debian's backports, with five people on loopback; its tests ask it for
# profiles, posts, lists, a change and a deletion. About a minute, most of which is snac settling who follows whom.
#   snac.sh           exit 1 when a test fails; what cannot be had is skipped aloud
# Needs curl and python3; snac (SNAC=its path) is else unpacked, not installed, from the machine's own Debian mirror. Everything is in
# ROOT=/tmp/echo-snac; it listens on 127.0.0.1:PORT.
set -euo pipefail
cd "$(dirname "$0")/.."
ROOT=${ROOT:-/tmp/echo-snac} PORT=${PORT:-42280}
base=http://127.0.0.1:$PORT names=(ana bruno carla dinis eva) places=("Porto, Portugal" "Lisboa" "São Paulo, Brasil" "Braga, PT" "Madrid")
say() { printf 'snac: %s\n' "$*"; }
skip() { say "SKIPPED: $*"; exit 0; }
for p in curl python3; do command -v $p >/dev/null || skip "no $p"; done

# fetched unpacks the package into ROOT, with lists and sources of its own, so that the machine's stay as they are.
fetched() {
	local mirror apt=$ROOT/apt
	command -v apt-get >/dev/null && command -v dpkg >/dev/null || return 1
	mirror=$(cat /etc/apt/sources.list.d/*.sources /etc/apt/sources.list 2>/dev/null | grep -v '^#' | grep -oE '(https?|file)://[^ ]+' | grep -vE 'security|snapshot' | head -1 || true)
	[ -n "$mirror" ] || return 1
	mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$ROOT/package"
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror bookworm-backports main" >"$apt/sources.list"
	local o=(-o "Dir::Etc::sourcelist=$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null -o "Dir::State::lists=$apt/lists" -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root -qq)
	(cd "$ROOT/package" && apt-get "${o[@]}" update && apt-get "${o[@]}" download snac2 && dpkg -x snac2_*.deb .) >"$ROOT/fetch.log" 2>&1
}

api() { curl -fsS -o /dev/null -H "Authorization: Bearer $1" "$base$2" "${@:3}"; }

# seeded: five people of five posts each, of whom the first three are followed by the four others.
seeded() {
	local i k name password token a b data=$ROOT/data
	rm -rf "$data" "$ROOT/tokens"
	printf '127.0.0.1\n%s\nlocalhost:%s\n\nadmin@example.org\n' "$PORT" "$PORT" | "$snac" init "$data" >/dev/null
	for i in "${!names[@]}"; do
		password[i]=$(printf '%s Teste\n' "${names[i]}" | "$snac" adduser "$data" "${names[i]}" 2>&1 | sed -n 's/.*password is //p')
	done
	python3 - "$data" "${names[@]}" "${places[@]}" <<-'PY'
	import json, sys

	data, rest = sys.argv[1], sys.argv[2:]
	def edit(path, **fields):
	    doc = json.load(open(path)); doc.update(fields); json.dump(doc, open(path, "w"))
	edit(data + "/server.json", protocol="http", disable_cache=True, timeline_purge_days=0, queue_retry_max=1, shared_inboxes=False, disable_email_notifications=True)
	for name, place in zip(rest[:5], rest[5:]):
	    edit(data + "/user/%s/user.json" % name, name=name + " Teste", bio="Perfil de %s. %s." % (name, place), metadata={"Localização": place}, show_contact_metrics=True, show_followers=True)
	PY
	"$snac" httpd "$data" >"$ROOT/log" 2>&1 & server=$!
	for _ in $(seq 50); do curl -fsS -o /dev/null "$base/" 2>/dev/null && break; sleep 0.1; done
	for i in "${!names[@]}"; do
		name=${names[i]}
		token=$(curl -fsS "$base/oauth/x-snac-get-token" --data-urlencode "login=$name" --data-urlencode "passwd=${password[i]}" | grep -oE '[0-9a-f]{32,}' | head -1)
		echo "$name $token ${password[i]}" >>"$ROOT/tokens"
		for k in 1 2 3 4 5; do api "$token" /api/v1/statuses --data-urlencode "status=Nota $k de $name: o autocarro para o Porto está atrasado. #portugal" -d visibility=public -d language=pt; done
	done
	for a in "${names[@]}"; do for b in "${names[@]:0:3}"; do [ "$a" = "$b" ] || "$snac" follow "$data" "$a" "http://localhost:$PORT/$b" >>"$ROOT/log" 2>&1 || true; done; done
	for _ in $(seq 90); do [ "$(ls "$data/user/ana/followers" 2>/dev/null | wc -l)" -ge 4 ] && return; sleep 1; done # its queue settles them
	say "FAILED: ana has $(ls "$data/user/ana/followers" | wc -l) followers after 90 s"; tail -5 "$ROOT/log"; return 1
}

server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true' EXIT
mkdir -p "$ROOT"
snac=${SNAC:-$(command -v snac || true)}
if [ -z "$snac" ]; then
	snac=$ROOT/package/usr/bin/snac
	[ -x "$snac" ] || fetched || skip "the package snac2 cannot be had: $(tail -1 "$ROOT/fetch.log" 2>/dev/null)"
fi
"$snac" 2>/dev/null | head -1 | sed 's/^/snac: /' || true
seeded
CGO_ENABLED=0 ECHO_SNAC=$base ECHO_SNAC_TOKENS=$ROOT/tokens go test -count=1 ./crawler/mastodon ./crawler/social -run TestSnac "$@"
say passed
