#!/bin/bash
# hugoweb.sh - a web that Hugo wrote, behind nginx on loopback, with every answer that is not simply a page: 301, 304, 404, 410,
# 429 and 503 with Retry-After, feeds, sitemaps, robots.txt with a Crawl-delay, gzip, a page that changes and one that vanishes.
# The program crawls it and looks at it again (--revisit 1m); then the outcome of every URL is compared with what nginx logged
# and with what the peer says of it. About 3 minutes, and the time that Hugo's build takes the first time. Not part of .ci/run.
#   hugoweb.sh           exit 1 when an outcome is another one
# Needs nginx, curl and python3; and hugo (HUGO=its path), else it is built from its module; where that cannot be had either, the
# script writes the same files itself and says so. ROOT=/tmp/echo-hugoweb holds everything; listeners are on 127.0.3.0/24.
#
#   site          its pages are found by                              and it
#   pt.test       the first ten by links, all others by the feeds     has a 301, a 404, a 410; changes while it is crawled
#   map.test      sitemaps that robots.txt names; feeds are 404       -
#   slow.test     links; only n1 and n10 to n19 are allowed           asks for 2 s, answers 429 to who comes sooner than 3 s
#   closed.test   nothing                                             answers 503 with Retry-After: 20 to everything
set -euo pipefail
cd "$(dirname "$0")/.."
ROOT=${ROOT:-/tmp/echo-hugoweb} PORT=${PORT:-8095} LIMIT=${LIMIT:-420}
HUGO_VERSION=v0.152.2 # the newest that Go 1.26 builds
api=127.0.0.1:$((PORT + 1))
say() { printf 'hugoweb: %s\n' "$*"; }
for p in nginx curl python3; do command -v $p >/dev/null || { say "SKIPPED: no $p"; exit 0; }; done
mkdir -p "$ROOT"

hugo() { # its path
	if [ -n "${HUGO:-}" ]; then echo "$HUGO"; return; fi
	type -P hugo && return # not command -v, which finds this function
	[ -x "$ROOT/bin/hugo" ] || CGO_ENABLED=0 GOFLAGS= GOBIN=$ROOT/bin go install "github.com/gohugoio/hugo@$HUGO_VERSION" >"$ROOT/install.log" 2>&1 || return
	echo "$ROOT/bin/hugo"
}

words() { case $1 in pt) echo "O autocarro chegou atrasado à estação; os utentes apanharam o comboio das oito." ;; br) echo "O ônibus chegou atrasado na estação; o pessoal pegou o trem das oito." ;; esac; }

# written SITE PROGRAM: the site as Hugo makes it.
written() {
	local src=$ROOT/src i l d
	rm -rf "$src"; mkdir -p "$src/content/pt" "$src/content/br" "$src/layouts/_default"
	cat >"$src/hugo.toml" <<-T
	baseURL = "http://$1:$PORT/"
	title = "Notícias"
	disableKinds = ["taxonomy", "term"]
	enableRobotsTXT = true
	defaultContentLanguage = "pt"
	defaultContentLanguageInSubdir = true
	[languages.pt]
	languageCode = "pt-PT"
	contentDir = "content/pt"
	[languages.br]
	languageCode = "pt-BR"
	contentDir = "content/br"
	T
	echo '<!doctype html><html lang="{{ .Site.LanguageCode }}"><head><meta charset="utf-8"><title>{{ .Title }}</title>{{ range .AlternativeOutputFormats }}<link rel="{{ .Rel }}" type="{{ .MediaType.Type }}" href="{{ .Permalink }}">{{ end }}{{ range .Translations }}<link rel="alternate" hreflang="{{ .Site.LanguageCode }}" href="{{ .Permalink }}">{{ end }}<link rel="canonical" href="{{ .Permalink }}"></head><body>{{ block "main" . }}{{ end }}</body></html>' >"$src/layouts/_default/baseof.html"
	echo '{{ define "main" }}<h1>{{ .Title }}</h1><time datetime="{{ .Date.Format "2006-01-02T15:04:05Z07:00" }}"></time>{{ .Content }}{{ end }}' >"$src/layouts/_default/single.html"
	echo '{{ define "main" }}<ul>{{ range first 10 .Site.RegularPages }}<li><a href="{{ .RelPermalink }}">{{ .Title }}</a></li>{{ end }}</ul>{{ end }}' >"$src/layouts/_default/list.html"
	for i in $(seq 40); do
		d=$(printf '2026-%02d-%02dT08:00:00Z' $((i % 9 + 1)) $((i % 27 + 1)))
		for l in pt br; do printf -- '---\ntitle: "Notícia %s"\ndate: %s\n---\n%s Notícia %s.\n' "$i" "$d" "$(words $l)" "$i" >"$src/content/$l/n$i.md"; done
	done
	"$2" --quiet -s "$src" -d "$ROOT/www/$1"
}

# standin SITE: the same without Hugo.
standin() {
	local www=$ROOT/www/$1 at=http://$1:$PORT i l o
	for l in pt br; do
		o=pt; [ $l = br ] || o=br
		mkdir -p "$www/$l"
		{
			echo "<!doctype html><html lang=\"pt\"><meta charset=\"utf-8\"><title>Notícias</title><link rel=\"alternate\" type=\"application/rss+xml\" href=\"$at/$l/index.xml\"><link rel=\"alternate\" hreflang=\"pt\" href=\"$at/$o/\"><ul>"
			for i in $(seq 10); do echo "<li><a href=\"/$l/n$i/\">Notícia $i</a></li>"; done
		} >"$www/$l/index.html"
		{ echo '<rss version="2.0"><channel><title>Notícias</title>'; for i in $(seq 40); do echo "<item><title>Notícia $i</title><link>$at/$l/n$i/</link></item>"; done; echo '</channel></rss>'; } >"$www/$l/index.xml"
		{ echo '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'; for i in $(seq 40); do echo "<url><loc>$at/$l/n$i/</loc></url>"; done; echo '</urlset>'; } >"$www/$l/sitemap.xml"
		for i in $(seq 40); do
			mkdir -p "$www/$l/n$i"
			echo "<!doctype html><html lang=\"pt\"><meta charset=\"utf-8\"><title>Notícia $i</title><link rel=\"alternate\" hreflang=\"pt\" href=\"$at/$o/n$i/\"><p>$(words $l) Notícia $i." >"$www/$l/n$i/index.html"
		done
	done
	echo "<sitemapindex xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"><sitemap><loc>$at/pt/sitemap.xml</loc></sitemap><sitemap><loc>$at/br/sitemap.xml</loc></sitemap></sitemapindex>" >"$www/sitemap.xml"
	echo 'User-agent: *' >"$www/robots.txt"
}

build() {
	local site program
	rm -rf "$ROOT/www"
	program=$(hugo) || program=
	[ -n "$program" ] || say "no Hugo can be had (see $ROOT/install.log): the pages are the script's own"
	for site in pt.test map.test slow.test; do if [ -n "$program" ]; then written $site "$program"; else standin $site; fi; done
	chmod -R a+rX "$ROOT"
	say "$([ -z "$program" ] || "$program" version | cut -c1-40) $(find "$ROOT/www" -type f | wc -l) files"
}

start() {
	mkdir -p "$ROOT/tmp"
	: >"$ROOT/access.log"
	cat >"$ROOT/nginx.conf" <<-N
	worker_processes 1; pid $ROOT/nginx.pid; error_log $ROOT/error.log; daemon on;
	events { worker_connections 256; }
	http {
	  types { text/html html; application/rss+xml rss; application/xml xml; text/plain txt; }
	  log_format seen '\$status\t\$msec\t\$host\t\$request_uri\t\$http_user_agent'; access_log $ROOT/access.log seen; gzip on; gzip_types application/xml;
	  client_body_temp_path $ROOT/tmp/b; proxy_temp_path $ROOT/tmp/p; fastcgi_temp_path $ROOT/tmp/f; uwsgi_temp_path $ROOT/tmp/u; scgi_temp_path $ROOT/tmp/s;
	  limit_req_zone \$server_name zone=one:1m rate=20r/m;
	  server { listen 127.0.3.1:$PORT; server_name pt.test; root $ROOT/www/pt.test; location = /velho { return 301 /pt/; } location = /foi { return 410; } }
	  server { listen 127.0.3.2:$PORT; server_name map.test; root $ROOT/www/map.test; location ~ index.xml\$ { return 404; }
	    location = /robots.txt { return 200 "User-agent: *\nAllow: /\nSitemap: http://map.test:$PORT/sitemap.xml\n"; } }
	  server { listen 127.0.3.3:$PORT; server_name slow.test; root $ROOT/www/slow.test; limit_req_status 429;
	    location / { limit_req zone=one; error_page 429 @busy; } location @busy { internal; add_header Retry-After 5 always; return 429; }
	    location = /robots.txt { return 200 "User-agent: *\nDisallow: /br/\nDisallow: /pt/n\nAllow: /pt/n1\nCrawl-delay: 2\n"; } }
	  server { listen 127.0.3.4:$PORT; server_name closed.test; add_header Retry-After 20 always; location / { return 503; } }
	}
	N
	nginx -e "$ROOT/error.log" -c "$ROOT/nginx.conf"
	printf '127.0.3.1 pt.test\n127.0.3.2 map.test\n127.0.3.3 slow.test\n127.0.3.4 closed.test\n' >"$ROOT/hosts"
	for u in pt.test:$PORT/pt/ pt.test:$PORT/velho pt.test:$PORT/foi pt.test:$PORT/nada map.test:$PORT/pt/ slow.test:$PORT/pt/ closed.test:$PORT/; do echo "http://$u"; done >"$ROOT/seeds"
}

# status CODE SITE: how many different URLs of a site were answered so.
status() { awk -F'\t' -v c="$1" -v s="$2" '$1 == c && $3 == s && !seen[$4]++ {n++} END {print n + 0}' "$ROOT/access.log"; }

crawl() {
	local began=$SECONDS tick=0
	rm -rf "$ROOT/peer" "$ROOT/export.warc.gz" "$ROOT/export.jsonl"
	"$node" run --data "$ROOT/peer" --replicas 1 --api "$api" --listen /ip4/127.0.0.1/udp/0/quic-v1 --hosts "$ROOT/hosts" --allow-net 127.0.3.0/24 --delay 50ms --revisit 1m --seeds "$ROOT/seeds" >"$ROOT/peer.log" 2>&1 &
	peer=$!
	# Everything once; then two pages of pt.test are another and none, and all is looked at again.
	until [ "$(status 200 pt.test)" -ge 84 ] && [ "$(status 200 map.test)" -ge 84 ] && [ "$(status 200 slow.test)" -ge 14 ]; do wait_more; done
	say "$((SECONDS - began)) s: every page was had"
	echo '<!doctype html><title>Emenda</title><p>Palavras emendadas.' >"$ROOT/www/pt.test/pt/n7/index.html"
	rm -r "$ROOT/www/pt.test/pt/n8"
	until [ "$(status 304 pt.test)" -ge 78 ] && [ "$(status 304 map.test)" -ge 78 ] && awk -F'\t' '$1 == 200 && $3 == "pt.test" && $4 == "/pt/n7/" {n++} $4 == "/pt/n8/" && $3 == "pt.test" && $1 > 400 {g++} END {exit !(n > 1 && g > 0)}' "$ROOT/access.log"; do wait_more; done
	say "$((SECONDS - began)) s: all was looked at again"
}
wait_more() {
	kill -0 "$peer" 2>/dev/null || { say "FAILED: the peer ended"; tail -3 "$ROOT/peer.log"; exit 1; }
	[ "$SECONDS" -lt "$LIMIT" ] || { say "FAILED: not done after $LIMIT s: 200 $(status 200 pt.test) $(status 200 map.test) $(status 200 slow.test), 304 $(status 304 pt.test) $(status 304 map.test)"; exit 1; }
	tick=$((tick + 1)); [ $((tick % 20)) != 0 ] || say "$SECONDS s: 200 $(status 200 pt.test) $(status 200 map.test) $(status 200 slow.test), 304 $(status 304 pt.test) $(status 304 map.test)"
	sleep 1
}

# judge compares what nginx saw, and what the peer says of a URL, with what is right.
judge() {
	"$node" export --api "$api" -o "$ROOT/export.jsonl" && "$node" export --api "$api" --format warc -o "$ROOT/export.warc.gz"
	if command -v warc >/dev/null && warc verify "$ROOT/export.warc.gz" 2>&1 | grep -E 'ERROR|valid=false'; then return 1; fi # the Internet Archive's
	python3 - "$ROOT" "$PORT" "$node" "$api" <<-'PY'
	import collections, gzip, json, os, subprocess, sys, time

	root, port, node, api = sys.argv[1:]
	asked, faults = collections.defaultdict(list), []

	def read():
	    asked.clear()
	    for line in open(root + "/access.log"):
	        status, at, host, path, agent = line.rstrip("\n").split("\t")
	        if agent.startswith("echo-node"):
	            asked[host, path].append((float(at), int(status)))

	def fault(*words):
	    faults.append(" ".join(map(str, words)))

	def show(host, path):
	    out = subprocess.run([node, "show", "http://%s:%s%s" % (host, port, path), "--api", api, "--json"], capture_output=True, text=True)
	    return json.loads(out.stdout) if out.stdout else {}

	def codes(host, path):
	    return [status for _, status in sorted(asked.get((host, path), []))]

	# The peer goes on crawling meanwhile: what is wrong is looked at again, as a visit may have been under way. Who
	# answered 429 last waits for its turn.
	def outcome(host, path, state, why, first):
	    for left in (2, 1, 0):
	        read()
	        seen, said = codes(host, path), show(host, path)
	        want = ("pending", "status 429") if seen[-1:] == [429] else (state, why)
	        right = said.get("state") == want[0] and want[1] in (said.get("why") or "")
	        if right or not left:
	            break
	        time.sleep(1)
	    if not right:
	        fault(host, path, "is", said.get("state"), said.get("why"), "not", *want)
	    if first is None and seen or first is not None and (not seen or not any(s in first for s in seen)):
	        fault(host, path, "was answered", seen, "not", first)
	    return said

	read()
	checked = 0
	for host in ("pt.test", "map.test"):
	    for lang in ("pt", "br"):
	        paths = ["/%s/" % lang] + ["/%s/n%d/" % (lang, i) for i in range(1, 41)] + ["/%s/index.xml" % lang]
	        for path in paths + (["/%s/sitemap.xml" % lang] if host == "map.test" else []):
	            checked += 1
	            if path.endswith("index.xml") and host == "map.test":
	                outcome(host, path, "gone", "status 404", [404])
	            elif host == "pt.test" and path == "/pt/n8/":
	                outcome(host, path, "gone", "status 404", [404])
	                if codes(host, path)[0] != 200:
	                    fault(path, "was there at first:", codes(host, path))
	            else:
	                outcome(host, path, "done", "", [200])
	                seen = codes(host, path)
	                if len(seen) > 1 and seen.count(200) > (2 if (host, path) == ("pt.test", "/pt/n7/") else 1):
	                    fault(host, path, "was sent again unchanged:", seen)
	if outcome("pt.test", "/velho", "done", "", [301]).get("record", {}).get("redirect") != "web:http://pt.test:%s/pt/" % port:
	    fault("/velho does not say where it leads")
	outcome("pt.test", "/foi", "gone", "status 410", [410])
	outcome("pt.test", "/nada", "gone", "status 404", [404])
	if "emendadas" not in outcome("pt.test", "/pt/n7/", "done", "", [200]).get("record", {}).get("text", ""):
	    fault("/pt/n7/ has its old text")

	# slow.test: what is closed is not asked for; 2 s between requests, 5 s after a 429; each allowed page is had in the end.
	for i in range(1, 41):
	    path, open_ = "/pt/n%d/" % i, str(i).startswith("1")
	    if open_:
	        outcome("slow.test", path, "done", "", [200])
	    elif ("slow.test", path) in asked:
	        fault("slow.test", path, "is closed by robots.txt and was asked for")
	    elif show("slow.test", path).get("known"):
	        outcome("slow.test", path, "refused", "robots", None)
	    checked += 1
	for (host, path) in asked:
	    if host == "slow.test" and path.startswith("/br/"):
	        fault(host, path, "is closed by robots.txt and was asked for")
	visits = sorted(v for (host, _), vs in asked.items() if host == "slow.test" for v in vs)
	gaps = [(b[0] - a[0], a[1]) for a, b in zip(visits, visits[1:])]
	hurried = [g for g in gaps if g[0] < (4.9 if g[1] == 429 else 1.9)]
	if hurried:
	    fault("slow.test was hurried:", hurried)
	busy = sum(s == 429 for _, s in visits)
	if not busy:
	    fault("slow.test never said 429")

	# closed.test: only robots.txt is asked for, not before Retry-After, and the peer says why; after five times it gives up.
	knocks = sorted(at for (host, path), vs in asked.items() if host == "closed.test" for at, _ in vs)
	others = [path for host, path in asked if host == "closed.test" and path != "/robots.txt"]
	if not knocks or others or any(b - a < 19.9 for a, b in zip(knocks, knocks[1:])):
	    fault("closed.test:", knocks, others)
	said = show("closed.test", "/")
	stopped = sorted((said.get("site") or {}).get("stops") or {})
	if said.get("state") not in ("pending", "refused") or not any(s.startswith("robots-") for s in stopped):
	    fault("closed.test is", said.get("state"), said.get("site"))

	kinds = collections.Counter()
	for line in gzip.open(root + "/export.warc.gz", "rb"):
	    if line.startswith(b"WARC-Type: "):
	        kinds[line[11:].strip().decode()] += 1
	records = sum(1 for _ in open(root + "/export.jsonl"))
	if kinds["revisit"] < 150 or kinds["response"] < 170 or kinds["metadata"] != records:
	    fault("export:", dict(kinds), records, "records")
	print("hugoweb: outcome of %d URLs, %d requests: %s; slow.test %d times 429, smallest gap %.2f s; closed.test asked %d times" % (
	    checked + 4, sum(map(len, asked.values())), dict(collections.Counter(s for vs in asked.values() for _, s in vs)), busy, min(g for g, _ in gaps), len(knocks)))
	print("hugoweb: records %d, WARC %s; closed.test: %s" % (records, dict(kinds), ", ".join(stopped)))
	for f in faults:
	    print("hugoweb: WRONG:", f)
	sys.exit(bool(faults))
	PY
}

node=${ECHO_NODE:-$ROOT/echo-node} peer= tick=0
[ -n "${ECHO_NODE:-}" ] || CGO_ENABLED=0 go build -o "$node" ./cmd/echo-node
finish() { [ -z "$peer" ] || kill "$peer" 2>/dev/null || true; [ ! -s "$ROOT/nginx.pid" ] || kill "$(cat "$ROOT/nginx.pid")" 2>/dev/null || true; }
trap finish EXIT
build; start; SECONDS=0; crawl
judge || { say FAILED; exit 1; }
say passed
