#!/bin/bash
# docsweb.sh - a real web on loopback: the HTML documentation of Debian packages behind nginx, one site a package, each with
# its own address and name. Three echo-node processes crawl it whole; wget walks it too; the two sets are compared.
#   docsweb.sh all       everything below in order; about 10 minutes and 1 GB; exit 1 when a difference has no explanation
#   docsweb.sh fetch     download and unpack the packages (they are not installed)
#   docsweb.sh start     write nginx's configuration and start it      docsweb.sh stop
#   docsweb.sh walk      wget from the same seeds                      docsweb.sh crawl    echo-node, three processes
#   docsweb.sh compare   the two sets by what nginx logged
# ROOT=/tmp/echo-docsweb holds everything. Nothing outside it is written, all listeners are on 127.0.1.0/24. Needs Debian
# with apt-get, dpkg-deb, nginx, wget, python3. DELAY=5ms is the pace of a site; PACKAGES replaces the list.
set -euo pipefail
cd "$(dirname "$0")/.."
ROOT=${ROOT:-/tmp/echo-docsweb} PORT=${PORT:-8080} DELAY=${DELAY:-5ms}
PACKAGES=${PACKAGES:-apache2-doc cppreference-doc-en-html debian-handbook debian-reference-pt focalinux-html gimp-help-pt installation-guide-amd64 libreoffice-help-es libreoffice-help-gl libreoffice-help-pt}
say() { printf 'docsweb: %s\n' "$*"; }
sites=$ROOT/sites.tsv # address, name, document root, first page

fetch() {
	mkdir -p "$ROOT/debs" "$ROOT/root"
	for p in $PACKAGES; do
		[ -d "$ROOT/root/$p" ] && continue
		ls "$ROOT/debs/${p}_"*.deb >/dev/null 2>&1 || (cd "$ROOT/debs" && apt-get download -q "$p" >/dev/null 2>&1) || { say "cannot download $p"; return 1; }
		dpkg-deb -x "$ROOT/debs/${p}_"*.deb "$ROOT/root/$p.new" && mv "$ROOT/root/$p.new" "$ROOT/root/$p"
	done
	chmod -R a+rX "$ROOT/root"
	say "$(find "$ROOT/root" -type f -name '*.html*' | wc -l) HTML files of $(wc -w <<<"$PACKAGES") packages"
}

# lay out: the document root of a package is the nearest directory above all of its HTML.
layout() {
	local n=0 p d first
	: > "$sites"
	for p in $PACKAGES; do
		d=$(find "$ROOT/root/$p" -type f -name '*.html' -printf '%h\n' | sort -u | awk -F/ 'NR==1 {n=split($0,a,"/")} {m=split($0,b,"/"); for(i=1;i<=n&&i<=m&&a[i]==b[i];i++); n=i-1} END {s=""; for(i=2;i<=n;i++) s=s "/" a[i]; print s}')
		case $p in libreoffice-help-*) d=${d%%/share/libreoffice/help/*}/share/libreoffice/help ;; esac # their <base href> leads up to here
		first=$(cd "$d" && find . -name 'main0000.html' -path '*swriter*' -o -name 'index.html' -o -name 'index.*.html' | awk '{print gsub("/", "/"), length, $0}' | sort -k1n -k2n -k3 | head -1 | sed 's/^[^.]*\.\///')
		[ -n "$first" ] || { say "no first page in $p"; return 1; }
		n=$((n + 1)); printf '127.0.1.%d\t%s.test\t%s\t%s\n' "$n" "$p" "$d" "$first" >> "$sites"
	done
	awk '{print $1, $2}' "$sites" > "$ROOT/hosts"
	# One seed a site, and one a language tree that has its own index. LibreOffice keeps its table of contents in a script, so
	# there every page is a seed, as its owner would list them in a sitemap.
	while IFS=$'\t' read -r _ h d first; do
		echo "http://$h:$PORT/$first"
		(cd "$d" && find . -mindepth 2 -maxdepth 2 -name index.html -printf "http://$h:$PORT/%P\n")
		case $h in libreoffice*) (cd "$d" && find . -name '*.html' -printf "http://$h:$PORT/%P\n") ;; esac
	done < "$sites" | grep -v "apache2-doc.test:$PORT/tr/" | sort -u > "$ROOT/seeds"
}

# robots.txt of a site: one closes a tree, so that the rule is seen to work on a real site.
robots() { case $1 in apache2-doc.test) printf 'User-agent: *\\nDisallow: /tr/\\n' ;; *) printf 'User-agent: *\\nAllow: /\\n' ;; esac; }

start() {
	layout
	mkdir -p "$ROOT/nginx"
	{
		cat <<-C
		worker_processes 1; pid $ROOT/nginx/pid; error_log $ROOT/nginx/error.log; daemon on;
		events { worker_connections 1024; }
		http {
		  include /etc/nginx/mime.types; default_type application/octet-stream; sendfile on; keepalive_requests 100000;
		  server_names_hash_bucket_size 128; log_format seen '\$http_user_agent\t\$status\t\$msec\t\$host\t\$request_uri';
		  access_log $ROOT/nginx/access.log seen;
		  client_body_temp_path $ROOT/nginx/t1; proxy_temp_path $ROOT/nginx/t2; fastcgi_temp_path $ROOT/nginx/t3; uwsgi_temp_path $ROOT/nginx/t4; scgi_temp_path $ROOT/nginx/t5;
		C
		# 127.0.1.250 knows every site: wget asks it as a proxy, so that it needs no resolver.
		while IFS=$'\t' read -r a h d _; do
			echo "  server { listen $a:$PORT; listen 127.0.1.250:$PORT; server_name $h; root $d; index index.html; autoindex off; charset_types text/plain; location = /robots.txt { default_type text/plain; return 200 \"$(robots "$h")\"; } }"
		done < "$sites"
		echo "  server { listen 127.0.1.250:$PORT default_server; location / { return 403; } }"
		# one page that links to every seed, so that wget makes one walk of all sites
		echo "  server { listen 127.0.1.250:$PORT; server_name seeds.test; root $ROOT/seedpage; }"
		echo "}"
	} > "$ROOT/nginx/nginx.conf"
	mkdir -p "$ROOT/seedpage"
	sed 's|.*|<p><a href="&">&</a></p>|' "$ROOT/seeds" > "$ROOT/seedpage/index.html"
	nginx -e "$ROOT/nginx/error.log" -c "$ROOT/nginx/nginx.conf"
	say "$(wc -l < "$sites") sites, $(wc -l < "$ROOT/seeds") seeds"
}
stop() { [ ! -s "$ROOT/nginx/pid" ] || kill "$(cat "$ROOT/nginx/pid")" 2>/dev/null || true; }

# seen AGENT LINE - the URLs that nginx answered to that agent after that line of its log, robots.txt left out: status, URL
logged() { wc -l < "$ROOT/nginx/access.log"; }
seen() { awk -F'\t' -v a="$1" -v n="$2" -v p="$PORT" 'NR > n && index($1, a) == 1 && $5 != "/robots.txt" {print $2 "\t" "http://" $4 ":" p $5}' "$ROOT/nginx/access.log"; }

walk() {
	local began=$SECONDS from
	from=$(logged)
	mkdir -p "$ROOT/walk"
	# links of <a>, <area>, <frame>, <iframe> only; other hosts than ours are not asked; robots.txt and nofollow are obeyed
	(cd "$ROOT/walk" && wget --recursive --level=inf --span-hosts --domains="seeds.test,$(awk '{print $2}' "$sites" | paste -sd,)" --follow-tags=base,meta,a,area,frame,iframe \
		--user-agent=docsweb-walk --delete-after --no-directories --no-verbose --output-file="$ROOT/walk.log" \
		-e use_proxy=on -e "http_proxy=http://127.0.1.250:$PORT/" -e robots=on --tries=1 "http://seeds.test:$PORT/") || true # 8: some answers were 404
	seen docsweb-walk "$from" | grep -v "http://seeds.test:" | sort -u > "$ROOT/walk.tsv"
	say "wget asked for $(wc -l < "$ROOT/walk.tsv") URLs in $((SECONDS - began)) s"
}

node=${ECHO_NODE:-$ROOT/echo-node}
ask() { local n=$1; shift; "$node" "$@" --api "127.0.0.1:$((PORT + 10 + n))" --json; }
value() { ask "$1" status 2>/dev/null | tr ',' '\n' | sed -n "s/.*\"$2\": *\"\{0,1\}\([A-Za-z0-9]*\).*/\1/p" | head -1; }

# crawl: without --contact nothing but loopback is asked, so the many links to the outside stay what they are: links.
crawl() {
	local pids=() began n code left tick=0 from
	from=$(logged)
	[ -n "${ECHO_NODE:-}" ] || CGO_ENABLED=0 go build -o "$node" ./cmd/echo-node
	rm -rf "$ROOT/peers"; mkdir -p "$ROOT/peers"
	trap 'kill "${pids[@]}" 2>/dev/null || true' EXIT
	for n in 1 2 3; do
		"$node" run --data "$ROOT/peers/$n" --api "127.0.0.1:$((PORT + 10 + n))" --listen /ip4/127.0.0.1/udp/0/quic-v1,/ip4/127.0.0.1/tcp/0 \
			--hosts "$ROOT/hosts" --allow-net 127.0.1.0/24 --delay "$DELAY" --until-idle 15s \
			$([ $n = 1 ] || echo --join "$ROOT/peers/1/addrs") >"$ROOT/peers/log$n" 2>&1 &
		pids+=($!)
		for _ in $(seq 150); do [ "$(value $n peers)" ] && break; sleep 0.2; done
	done
	for _ in $(seq 150); do [ "$(value 1 peers)$(value 2 peers)$(value 3 peers)" = 333 ] && break; sleep 0.2; done
	[ "$(value 1 peers)" = 3 ] || { say "FAILED: three peers do not find each other"; return 1; }
	began=$SECONDS
	ask 1 seed --seeds "$ROOT/seeds" >"$ROOT/peers/seeded" || { say "FAILED: seed"; tail -3 "$ROOT/peers/seeded"; return 1; }
	: > "$ROOT/peers/asked"
	while :; do
		left=0; for n in 1 2 3; do left=$((left + $(value $n pending || echo 0) + $(value $n fetching || echo 0) + $(value $n outbox || echo 0))) || left=1; done
		kill -0 "${pids[0]}" 2>/dev/null || break
		tick=$((tick + 1)); [ $((tick % 10)) != 0 ] || say "$((SECONDS - began)) s: fetched $(for n in 1 2 3; do value $n fetched; done | tr '\n' ' ') left $left"
		if [ "$left" = 0 ] && [ ! -s "$ROOT/peers/asked" ]; then
			for n in 1 2 3; do
				ask $n query servidor --limit 5 >"$ROOT/peers/answer$n" || true
				echo "peer $n fetched $(value $n fetched), answers with about $(grep -o '"total_estimate":[0-9]*' "$ROOT/peers/answer$n" | cut -d: -f2) hits for servidor" >> "$ROOT/peers/asked"
			done
		fi
		[ $((SECONDS - began)) -lt "${LIMIT:-1800}" ] || { say "FAILED: not done after $((SECONDS - began)) s"; return 1; }
		sleep 1
	done
	for n in 0 1 2; do code=0; wait "${pids[n]}" || code=$?; [ $code = 0 ] || { say "FAILED: peer $((n + 1)) ended with $code"; tail -3 "$ROOT/peers/log$((n + 1))"; return 1; }; done
	trap - EXIT
	cat "$ROOT/peers/asked"
	seen echo-node "$from" > "$ROOT/crawl.all"; sort -u "$ROOT/crawl.all" > "$ROOT/crawl.tsv"
	say "echo-node asked for $(wc -l < "$ROOT/crawl.tsv") URLs in $((SECONDS - began)) s; asked more than once: $(($(wc -l < "$ROOT/crawl.all") - $(cut -f2 "$ROOT/crawl.tsv" | sort -u | wc -l)))"
}

# explain - finds, in all pages, how each URL of a difference is mentioned, and names the rule by which only one walk asked
# for it. "side TAB status TAB URL" in, the same and the rule out; exit 1 when one has no rule.
explain() {
	python3 - "$sites" "$PORT" "$ROOT/difference.tsv" <<-'PY'
	import collections, html.parser, os, re, sys, urllib.parse

	sites, port, differences = sys.argv[1:]
	rows = [line.rstrip("\n").split("\t") for line in open(differences)]
	squeeze = lambda url: re.sub("(?<!:)//+", "/", url) # urljoin loses empty segments
	wanted, mentions = {squeeze(row[2]) for row in rows}, collections.defaultdict(set)
	tails = {row[2].rstrip("/").rsplit("/", 1)[1] for row in rows}

	class Page(html.parser.HTMLParser):
	    def __init__(self, url):
	        super().__init__()
	        self.base = url

	    def handle_starttag(self, tag, attributes):
	        at = dict(attributes)
	        if tag == "base" and at.get("href"):
	            self.base = urllib.parse.urljoin(self.base, at["href"])
	        ref = at.get("href") or (at.get("src") if tag in ("frame", "iframe") else None)
	        if not ref:
	            return
	        try:
	            url = urllib.parse.urldefrag(urllib.parse.urljoin(self.base, ref.strip()))[0]
	        except ValueError:
	            return
	        if squeeze(url) in wanted:
	            mentions[squeeze(url)].add((tag, " ".join(sorted((at.get("rel") or "").lower().split()))))

	for line in open(sites):
	    _, host, root, _ = line.rstrip("\n").split("\t")
	    for folder, _, files in os.walk(root):
	        for name in files:
	            if ".html" not in name:
	                continue
	            path = os.path.join(folder, name)
	            text = open(path, encoding="utf-8", errors="replace").read()
	            if any(tail in text for tail in tails):
	                Page("http://%s:%s/%s" % (host, port, urllib.parse.quote(os.path.relpath(path, root)))).feed(text)

	unexplained = 0
	for side, status, url in rows:
	    how, rule = mentions[squeeze(url)], "UNEXPLAINED"
	    if side == "only wget" and how and all({"nofollow", "ugc", "sponsored"} & set(rel.split()) for _, rel in how):
	        rule = "every link to it says nofollow, which wget does not read in rel"
	    elif side == "only echo-node" and how and all(tag == "link" for tag, _ in how):
	        rule = "only link elements lead to it (rel %s), which wget was told to leave" % "; ".join(sorted(rel for _, rel in how))
	    else:
	        unexplained += 1
	    print(side, status, url, rule, sep="\t")
	sys.exit(unexplained != 0)
	PY
}

compare() {
	local walked crawled twice
	walked=$(wc -l < "$ROOT/walk.tsv") crawled=$(wc -l < "$ROOT/crawl.tsv")
	LC_ALL=C comm -3 <(LC_ALL=C sort "$ROOT/walk.tsv") <(LC_ALL=C sort "$ROOT/crawl.tsv") | awk -F'\t' -v OFS='\t' '$1 != "" {print "only wget", $1, $2} $1 == "" {print "only echo-node", $2, $3}' > "$ROOT/difference.tsv"
	twice=$(cut -f2 "$ROOT/crawl.all" | sort | uniq -d | wc -l)
	say "wget $walked, echo-node $crawled, in both and with the same status $((walked - $(grep -c '^only wget' "$ROOT/difference.tsv" || true))), asked twice by echo-node: $twice"
	say "closed by robots.txt, and asked for: $(grep -c "apache2-doc.test:$PORT/tr/" "$ROOT/crawl.tsv" || true)"
	explain || { say "FAILED: a difference has no rule"; return 1; }
	[ "$crawled" -ge "${LEAST:-10000}" ] || { say "FAILED: fewer than ${LEAST:-10000} URLs"; return 1; }
	[ "$twice" = 0 ] && ! grep -q "apache2-doc.test:$PORT/tr/" "$ROOT/crawl.tsv" || { say "FAILED"; return 1; }
	say "passed"
}

case ${1:-} in
fetch | start | stop | walk | crawl | compare) "$1" ;;
all) fetch; start; trap stop EXIT; walk; (crawl); compare ;;
*) sed -n 2,12p "$0"; exit 2 ;;
esac
