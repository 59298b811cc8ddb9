package api

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/echo-node/echo-node/partition"
)

func genQuery(t *rapid.T) Query {
	text := rapid.StringMatching(`[a-zé&=+%#;ß 0-9]{0,20}`)
	instant := rapid.Custom(func(t *rapid.T) time.Time {
		if rapid.Bool().Draw(t, "zero") {
			return time.Time{}
		}
		return time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "s"), rapid.Int64Range(0, 999999999).Draw(t, "ns")).UTC()
	})
	q := Query{
		Q:    strings.TrimSpace(text.Draw(t, "q")),
		Kind: rapid.SampledFrom([]string{"", "page", "profile", "post", "edges"}).Draw(t, "kind"),
		Lang: rapid.SampledFrom([]string{"", "pt", "pt-BR", "zh-Hant-TW", "sl-rozaj-1994"}).Draw(t, "lang"),
		Site: strings.TrimSpace(text.Draw(t, "site")), Limit: rapid.IntRange(1, maxLimit).Draw(t, "limit"),
		Cursor: strings.TrimSpace(text.Draw(t, "cursor")),
		Since:  instant.Draw(t, "since"), Unfold: rapid.Bool().Draw(t, "unfold"),
		Timeout: time.Duration(rapid.SampledFrom([]int64{0, int64(minWait), 1500e6,
			rapid.Int64Range(int64(minWait), int64(maxWait)).Draw(t, "ns")}).Draw(t, "timeout")),
		Facets: Facets{Place: strings.TrimSpace(text.Draw(t, "place")), Near: strings.TrimSpace(text.Draw(t, "near")),
			Scope:   rapid.SampledFrom([]string{"", "1905", "1939..1945,1974-04-25", "..-0043"}).Draw(t, "scope"),
			Verdict: rapid.SampledFrom([]string{"", "in", "undecided"}).Draw(t, "verdict")},
	}
	if q.Near != "" {
		q.Radius = rapid.Float64Range(0.001, maxRadius).Draw(t, "radius")
	}
	if until := instant.Draw(t, "until"); until.After(q.Since) {
		q.Until = until
	}
	return q
}

func TestParseQueryReadsWhatValuesWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := genQuery(t)
		v, err := url.ParseQuery(q.Values().Encode())
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseQuery(v)
		if d := cmp.Diff(q, got); err != nil || d != "" {
			t.Fatalf("%v %s", err, d)
		}
	})
}

func FuzzParseQuery(f *testing.F) {
	f.Add("q=a&limit=10&since=2026-01-31&until=2026-02-01T00:00:00Z&lang=pt-BR&kind=page&site=x&cursor=c")
	f.Add("near=x&radius=1")
	f.Add("limit=-1&lang=-&since=0000-00-00&q=%ff%00")
	f.Add("since=9999-12-31T23:59:59.999999999-23:59")
	f.Fuzz(func(t *testing.T, raw string) {
		v, err := url.ParseQuery(raw)
		if err != nil {
			return
		}
		q, err := ParseQuery(v)
		if err != nil {
			status, text := Explain(err)
			if status != 422 && status != 501 || text == "" {
				t.Fatalf("%d %q", status, text)
			}
			return
		}
		if q.Limit < 1 || q.Limit > maxLimit || len(q.Q) > maxQueryText || len(q.Cursor) > maxCursor {
			t.Fatalf("beyond the limits: %+v", q)
		}
		again, err := ParseQuery(q.Values())
		if d := cmp.Diff(q, again); err != nil || d != "" {
			t.Fatalf("%v %s", err, d)
		}
	})
}

func FuzzExportParams(f *testing.F) {
	f.Add("page", "pt", "s", "2026-01-31", "", "jsonl", "c", "true", "", "PT", "Lisboa", "3", "1939..1945", "in")
	f.Add("", "", "", "", "x", "warc", "", "T", "1", "", "", "NaN", "1945..1939", "?")
	f.Fuzz(func(t *testing.T, kind, lang, site, since, until, format, cursor, local, captures, place, near, radius,
		scope, verdict string) {
		e, err := exportParams{FilterParams{kind, lang, site, since, until},
			FacetParams{place, near, radius, scope, verdict}, format, cursor, local, captures}.export()
		if err != nil {
			if status, _ := Explain(err); status != 422 && status != 400 {
				t.Fatalf("%d %v", status, err)
			}
			return
		}
		v := e.Values()
		again, err := exportParams{
			FilterParams{v.Get("kind"), v.Get("lang"), v.Get("site"), v.Get("since"), v.Get("until")}, facetParams(v),
			"jsonl", v.Get("cursor"), v.Get("local"), v.Get("captures"),
		}.export()
		if d := cmp.Diff(e, again); err != nil || d != "" {
			t.Fatalf("%v %s", err, d)
		}
	})
}

func FuzzParseSeeds(f *testing.F) {
	f.Add("application/json", []byte(`{"keys":["https://example.org/","web:https://b.example/"]}`))
	f.Add("text/plain; charset=utf-8", []byte("# comment\r\n\r\n https://example.org/ \nmastodon:a@b"))
	f.Add("application/json", []byte(`{"keys":["a"]}{"keys":["b"]}`))
	f.Add("", []byte(`{"keys":null}`))
	f.Add("image/png;;", []byte{0xff})
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		seeds, _, err := parseSeeds(contentType, body)
		if err != nil {
			if status, text := Explain(err); status < 400 || status > 499 || text == "" {
				t.Fatalf("%d %q", status, text)
			}
			return
		}
		if len(seeds) == 0 || len(seeds) > maxSeedKeys {
			t.Fatalf("%d seeds", len(seeds))
		}
	})
}

func TestSeedsAreTakenAsJSONAndAsText(t *testing.T) {
	_, base := serve(t, Options{Peer: fake()})
	many := strings.Repeat("https://example.org/\n", maxSeedKeys)
	for _, c := range []struct {
		contentType, body string
		status            int
		answers           int
	}{
		{"application/json", `{"keys":["https://example.org/a","web:https://example.org/b"]}`, 200, 2},
		{"", `{"keys":["https://example.org/a"]}`, 200, 1},
		{"text/plain; charset=utf-8", "# mine\n\n  https://example.org/a \r\nweb:https://example.org/b", 200, 2},
		{"text/plain", many, 200, maxSeedKeys},
		{"text/plain", many + "https://example.org/", 413, 0},
		{"application/json", `{"keys":["x"` + strings.Repeat(`,"x"`, maxSeedKeys) + `]}`, 413, 0},
		{"application/json", `{"keys":[]}`, 422, 0},
		{"text/plain", "# nothing\n", 422, 0},
		{"application/json", ``, 400, 0},
		{"application/json", `["https://example.org/"]`, 400, 0},
		{"application/json", `{"keys":[1]}`, 400, 0},
		{"application/json", `{"seeds":["https://example.org/"]}`, 400, 0},
		{"application/json", `{"keys":["a"]} x`, 400, 0},
		{"application/x-www-form-urlencoded", `seeds=x`, 415, 0},
		{"a/b/c;", `x`, 415, 0},
	} {
		req, err := http.NewRequest("POST", base+"/api/v1/seeds", strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		if c.contentType != "" {
			req.Header.Set("Content-Type", c.contentType)
		}
		req.Header.Set("Authorization", "Bearer "+testToken)
		res := do(t, req)
		name := fmt.Sprintf("%s %.40q", c.contentType, c.body)
		if res.StatusCode != c.status {
			t.Errorf("%s: %s", name, res.Status)
			continue
		}
		if c.status != 200 {
			problem(t, res, c.status)
			continue
		}
		v, err := decode[seedList](res.Body)
		if err != nil || len(v.Answers) != c.answers || v.Answers[c.answers-1].Answer != "admitted" {
			t.Errorf("%s: %d answers, %v", name, len(v.Answers), err)
		}
	}
}

func TestABadSeedIsRefusedAndKeepsNoOtherBack(t *testing.T) {
	c, _ := serve(t, Options{Peer: fake()})
	long := "https://example.org/" + strings.Repeat("x", maxKeyText)
	got, err := c.Seed(t.Context(), []string{"https://example.org/1", long, "nonsense", "https://example.org/2"})
	if err != nil || len(got) != 4 {
		t.Fatalf("%v, %v", got, err)
	}
	for i, want := range []string{"admitted", "refused", "refused", "admitted"} {
		if got[i].Answer != want || (want == "refused") != strings.Contains(got[i].Reason, partition.ErrKey.Error()) {
			t.Errorf("%d: %.80v", i, got[i])
		}
	}
	if got[3].Key != "web:https://example.org/2" || len(got[1].Key) > maxKeyText {
		t.Errorf("%.80v", got)
	}
}

func TestManySeedsGoInParts(t *testing.T) {
	c, _ := serve(t, Options{Peer: fake()})
	for _, x := range []struct{ n, size int }{{maxSeedKeys + 3, 0}, {400, maxKeyText - 40}} {
		seeds := make([]string, x.n)
		for i := range seeds {
			// six bytes each in JSON
			seeds[i] = fmt.Sprintf("https://example.org/%d#%s", i, strings.Repeat("<", x.size))
		}
		got, err := c.Seed(t.Context(), seeds)
		if err != nil || len(got) != len(seeds) {
			t.Fatalf("%d answers of %d, %v", len(got), x.n, err)
		}
		for i, a := range got {
			if a.Key != fmt.Sprint("web:https://example.org/", i) || a.Answer != "admitted" {
				t.Fatalf("%d: %.200v", i, a)
			}
		}
	}
}

func TestAPeerThatMiscountsItsAnswersIsAnError(t *testing.T) {
	p := fake()
	p.Seed = func(contextT, []partition.Key) ([]SeedAnswer, error) { return nil, nil }
	c, _ := serve(t, Options{Peer: p})
	var got *Problem
	if _, err := c.Seed(t.Context(), []string{"https://example.org/"}); !errors.As(err, &got) || got.Status != 500 {
		t.Errorf("%v", err)
	}
}

func TestFaultsQuoteLittle(t *testing.T) {
	_, err := queryParams{Limit: strings.Repeat("é", 2000)}.query()
	var m *huma.ErrorModel
	if !errors.As(err, &m) || len(m.Errors) != 1 || len(fmt.Sprint(m.Errors[0].Value)) > 90 {
		t.Fatalf("%v", err)
	}
}
