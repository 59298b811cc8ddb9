package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// evil is text that a page, a server or a peer sends to control a terminal, forge a line, or
// show words in another order.
const evil = "later \x1b]0;PWNED\x07\x1b[31mred\u009b2J\x7f\u202egnp.exe\u2066\u200f\ufeff\U000e0041\nmissing: 0\u2028x"

// drives finds text that no terminal may receive. The program itself prints line feeds and
// tabs.
func drives(text string) string {
	return regexp.MustCompile(`[\x00-\x08\x0b-\x1f\x7f\x{80}-\x{9f}\x{61c}\x{200e}\x{200f}\x{2028}-\x{202e}\x{2066}-\x{2069}\x{feff}\x{e0000}-\x{e0fff}]`).FindString(text)
}

// evilPeer responds with evil in every text field.
func evilPeer(t *testing.T) (addr string) {
	t.Helper()
	k := partition.Key("web:https://evil.example/")
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	missing := []api.Missing{{Peer: evil, Reason: evil, Slices: 1}}
	cover := api.Coverage{SlicesAnswered: 1, SlicesTotal: 1, Missing: missing}
	rec := store.Record{V: 1, Key: k, Kind: evil, URL: evil, FetchedAt: at, Peer: evil, Digest: evil, Title: evil,
		Text: evil, Lang: evil, Copies: evil,
		Place: &store.Place{Name: evil, Country: evil}, Period: []store.Interval{{Start: evil, End: evil}},
		Author: "=HYPERLINK(\"http://evil.example\")", Description: "  @SUM(A1)"}
	s, err := api.New(api.Options{Operator: "0123456789abcdef", Peer: api.Peer{
		Status: func(context.Context) (api.Status, error) {
			return api.Status{ID: evil, Swarm: evil, Membership: evil, Limits: []string{evil},
				AddressesBlocked: []string{evil}, Stops: map[string]int64{evil: 1},
				Languages: map[string]int64{evil: 1},
				Budgets:   []api.Budget{{Site: evil, Held: evil, Bucket: evil}},
				Streams:   []api.Stream{{Address: evil, Why: evil}}}, nil
		},
		Peers: func(context.Context) ([]api.PeerInfo, error) {
			return []api.PeerInfo{{Member: partition.Member{ID: evil}, State: evil}}, nil
		},
		Owner: func(context.Context, partition.Key) (api.Owner, error) {
			return api.Owner{Key: k, Slice: evil, Replicas: []string{evil}, Addrs: []string{evil}}, nil
		},
		Show: func(context.Context, partition.Key) (api.Shown, error) {
			return api.Shown{Key: k, Owner: evil, Known: true, State: evil, Why: evil, DueAt: &at, DueWhy: evil,
				Record: &rec}, nil
		},
		Copies: func(context.Context, partition.Key, string) (api.CopyGroup, error) {
			return api.CopyGroup{}, fmt.Errorf("%s", evil)
		},
		Seed: func(_ context.Context, keys []partition.Key) ([]api.SeedAnswer, error) {
			return []api.SeedAnswer{{Key: evil, Answer: "refused", Reason: evil}}, nil
		},
		Query: func(context.Context, api.Query) (api.Answer, error) {
			return api.Answer{Hits: []api.Hit{{Key: k, Kind: evil, Title: evil, Snippet: evil, Lang: evil, Place: evil,
				Period: evil, Verdict: evil, Peer: evil}}, Coverage: cover, Cursor: evil}, nil
		},
		Gaps: func(context.Context, api.GapQuery) (api.GapAnswer, error) {
			return api.GapAnswer{}, fmt.Errorf("%w: %s", api.ErrUnavailable, evil)
		},
		Export: func(_ context.Context, _ api.Export, fn func(store.Record, string) error) ([]api.Missing, error) {
			return missing, fn(rec, "1")
		},
		Ready: func() error { return nil },
	}})
	if err != nil {
		t.Fatal(err)
	}
	hs := httptest.NewServer(s)
	t.Cleanup(hs.Close)
	return hs.URL
}

// Text of a page, a server or a peer never reaches a terminal unchanged, for any command.
func TestAttackTerminalEscapes(t *testing.T) {
	addr := evilPeer(t)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"query", "x"}, {"show", "https://evil.example/"}, {"status"}, {"peers"}, {"owner", "https://evil.example/"},
		{"gaps"}, {"copies", "https://evil.example/"},
		{"seed", "https://evil.example/", "--api-token-file", token}, {"export"}, {"export", "--format", "csv"},
		{"nonsense" + evil}, {"show", evil},
	} {
		for _, format := range []string{"", "--json"} {
			var out, errs bytes.Buffer
			all := append([]string{}, args...)
			if len(args[0]) < 12 {
				all = append(all, "--api", addr)
			}
			if format != "" {
				all = append(all, format)
			}
			(&program{stdout: &out, stderr: &errs}).run(t.Context(), all)
			said := out.String() + errs.String()
			if bad := drives(said); bad != "" {
				t.Errorf("%.60q: a terminal is given %+q: %+q", all, bad, said)
			}
			if !strings.Contains(said, "PWNED") {
				t.Errorf("%.60q: the text is not there: %q", all, said)
			}
			if format == "" && args[0] != "export" && len(args) > 1 && args[1] != evil &&
				regexp.MustCompile(`(?m)^missing: 0`).MatchString(said) {
				t.Errorf("%.60q: a stranger's text looks like a line of ours: %q", all, said)
			}
		}
	}
	// JSON has the exact text.
	var out bytes.Buffer
	if code := (&program{stdout: &out, stderr: &out}).run(t.Context(),
		[]string{"query", "x", "--api", addr, "--json"}); code != exitDone {
		t.Fatalf("exit %d: %s", code, &out)
	}
	var a api.Answer
	if err := json.Unmarshal(out.Bytes(), &a); err != nil || a.Hits[0].Title != evil {
		t.Errorf("%v %v", a, err)
	}
	// Logs, from our code and from libraries.
	for _, g := range []*globals{{}, {JSON: true}, {Verbose: true}, {Verbose: true, JSON: true}} {
		var errs bytes.Buffer
		p := (&program{stdout: &errs, stderr: &errs}).cleaned()
		for _, log := range []*slog.Logger{p.logger(g), slog.New(p.libraryLog(g))} {
			log.With(evil, evil).WithGroup(evil).Error(evil, "err", fmt.Errorf("%s", evil), "text", evil, "list",
				[]string{evil}, "any", struct{ X string }{evil}, "raw", []byte(evil))
		}
		if bad := drives(errs.String()); bad != "" || strings.Count(errs.String(), "\n") != 2 ||
			!strings.Contains(errs.String(), "PWNED") {
			t.Errorf("%+v: the log has %+q: %+q", g, bad, errs.String())
		}
	}
}

// A cell that a spreadsheet would compute.
func TestAttackCSVFormula(t *testing.T) {
	for _, cells := range [][2]string{{"=1+1", "'=1+1"}, {"+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"},
		{"-2+3", "'-2+3"}, {"@SUM(A1)", "'@SUM(A1)"}, {"\t=1", "'\t=1"}, {"\u200e=1", "'=1"},
		{"-5", "-5"}, {"a=b", "a=b"}, {evil, "later "}} {
		rec := store.Record{V: 1, Key: "web:https://evil.example/", Title: cells[0], Description: cells[0],
			Author: cells[0], Text: cells[0]}
		edges := store.Record{V: 1, Key: "mastodon:a@m.example/followers",
			Edges: []store.Edge{{To: partition.Key(cells[0]), Spans: nil}}}
		var out bytes.Buffer
		if err := csvForm(&out).record(rec); err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(&out).ReadAll()
		if err != nil || len(rows) != 1 {
			t.Fatal(rows, err)
		}
		for i, name := range csvColumns() {
			if got := rows[0][i]; (name == "title" || name == "description" || name == "author" || name == "text") &&
				got != cells[1] && !(cells[0] == evil && strings.HasPrefix(got, cells[1])) || drives(got) != "" {
				t.Errorf("%s: %+q, want %+q", name, got, cells[1])
			}
		}
		out.Reset()
		if err := edgesForm(&out).record(edges); err != nil {
			t.Fatal(err)
		}
		if rows, err := csv.NewReader(&out).ReadAll(); err != nil || len(rows) > 0 &&
			strings.ContainsAny(rows[0][0][:1]+rows[0][1][:1], "=+@") {
			t.Errorf("edges: %q %v", rows, err)
		}
	}
}
