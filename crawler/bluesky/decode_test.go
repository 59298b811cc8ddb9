package bluesky

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/service"
)

const ana = "did:plc:abcdefghijklmnopqrstuvwx"

// canned returns a client of a server that always responds with body.
func canned(t testing.TB, body string) *Client {
	t.Helper()
	c, err := New(Options{Base: "https://view.test", MaxText: 4 << 10, MaxRaw: 8 << 10,
		Do: func(context.Context, service.Call) (*fetch.Response, error) {
			return &fetch.Response{Status: 200, Header: http.Header{}, Body: []byte(body)}, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Decoding is tolerant, and cuts what is too long.
func TestDecoding(t *testing.T) {
	many := func(s string, n int) string { return "[" + strings.TrimSuffix(strings.Repeat(s+",", n), ",") + "]" }
	author := `"author":{"did":"` + ana + `","handle":"Ana.Test","labels":[{"val":"!no-unauthenticated"},null,3]}`
	at := "at://" + ana + "/" + Posts + "/3kabc"
	for _, c := range []struct {
		json string
		ok   bool
	}{
		{`{"uri":"` + at + `",` + author + `}`, true},
		{`{"uri":"` + at + `",` + author + `,"record":null,"likeCount":"12","embed":[]}`, true},
		{`{"uri":"` + at + `",` + author + `,"record":{"text":5,"langs":"pt","facets":{"x":1},"createdAt":"yesterday","reply":[]}}`, true},
		// a post of another account
		{`{"uri":"` + at + `","author":{"did":"did:plc:bbbbbbbbbbbbbbbbbbbbbbbb"}}`, false},
		{`{"uri":"https://x.test/",` + author + `}`, false}, {`{"uri":"` + at + `"}`, false}, {`[]`, false},
		{`null`, false},
	} {
		p, ok := canned(t, "").post([]byte(c.json))
		if ok != c.ok || ok && (p.Author.Acct != "ana.test" || !p.Author.NoUnauthenticated || p.Boosts != -1) {
			t.Errorf("%s: %+v %v", c.json, p, ok)
		}
	}
	big := `{"uri":"` + at + `",` + author + `,"record":{"text":"` + strings.Repeat("é ",
		10_000) + `","langs":` + many(`"pt"`, 100) + `,"tags":` + many(`"x"`, 3000) +
		`,"facets":[{"features":` + many(`{"$type":"app.bsky.richtext.facet#mention","did":"`+ana+`"}`,
		3000) + `}]},"embed":{"images":` + many(`{"fullsize":"https://x.test/a"}`, 500) + `}}`
	p, ok := canned(t, "").post([]byte(big))
	if !ok || len(p.Text) > 4<<10 || !utf8.ValidString(p.Text) || len(p.Langs) != maxLangs || len(p.Tags) != 1 ||
		len(p.Mentions) != 1 || len(p.Media) != maxMedia || p.Raw != nil {
		t.Errorf("%v: %d bytes, %d langs, %d tags, %d mentions, %d media", ok, len(p.Text), len(p.Langs), len(p.Tags),
			len(p.Mentions), len(p.Media))
	}
	for s, want := range map[string]string{
		"https://pds.test": "https://pds.test", "https://PDS.test/": "https://pds.test",
		"http://127.0.0.1:2583": "http://127.0.0.1:2583",
		"https://u:p@pds.test":  "", "https://pds.test/x": "", "https://pds.test?x": "", "ftp://pds.test": "",
		"pds.test": "", "": "",
	} {
		doc, err := canned(t, `{"id":"`+ana+`","alsoKnownAs":["at://ana.test","https://x","at://ana.test",3],"service":[{"id":"#x"},{"id":"#atproto_pds","type":"AtprotoPersonalDataServer","serviceEndpoint":"`+s+`"}]}`).Document(context.Background(), ana)
		if err != nil || doc.PDS != want || len(doc.Handles) != 1 || doc.Handle() != "ana.test" {
			t.Errorf("%q: %+v %v", s, doc, err)
		}
	}
	if _, err := canned(t, `{"id":"did:plc:bbbbbbbbbbbbbbbbbbbbbbbb"}`).Document(context.Background(),
		ana); service.WordOf(err) != service.Misshapen {
		t.Errorf("another's document: %v", err)
	}
}

// With any response, a client returns posts and profiles within its limits, or a Fault. It does not
// panic or loop endlessly.
func FuzzAnswers(f *testing.F) {
	at := "at://" + ana + "/" + Posts + "/3kabc"
	for _, s := range []string{
		`{"did":"` + ana + `","handle":"ana.test","followersCount":3,"description":"x https://y.test/z.","labels":[{"val":"x"}]}`,
		`{"profiles":[{"did":"` + ana + `"}],"followers":[{"did":"` + ana + `"}],"cursor":"x","records":[{"uri":"` + at + `","cid":"b","value":{"text":"x","reply":{"parent":{"uri":"` + at + `"}}}}]}`,
		`{"feed":[{"post":{"uri":"` + at + `","author":{"did":"` + ana + `"},"record":{"text":"x"}},"reason":{"$type":"app.bsky.feed.defs#reasonRepost","by":{"did":"` + ana + `"}}}],"cursor":"y"}`,
		`{"posts":[null,1,"x",[],{}]}`, `{"error":"InvalidRequest","message":"x"}`, `{"did":"x","active":true}`,
		`<html>`, ``,
		`{"id":"` + ana + `","alsoKnownAs":["at://a.b"],"service":[{"id":"#atproto_pds","type":"AtprotoPersonalDataServer","serviceEndpoint":"https://x"}]}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		c, ctx := canned(t, body), context.Background()
		_, _ = c.Profile(ctx, ana)
		_, _, _ = c.Profiles(ctx, []string{ana, "ana.test"})
		_, _, _ = c.PostsByURI(ctx, []string{at})
		_, _ = c.Record(ctx, at)
		_, _ = c.Repo(ctx, ana)
		_, _ = c.Document(ctx, ana)
		_, _ = c.Resolve(ctx, "ana.test")
		_, _ = c.SearchActors(ctx, "x")
		_, _ = c.Probe(ctx, ana)
		for _, side := range []service.Side{service.Followers, service.Following} {
			e, err := c.Edges(Profile{ID: ana}, side, "", service.Limits{Pages: 30})
			if err != nil {
				t.Fatal(err)
			}
			for n := 0; !e.Done(); n++ {
				if _, err := e.Next(ctx); err != nil {
					break
				}
				if _, err := c.ResumeEdges(e.Checkpoint(), "", service.Limits{}); err != nil || n > 40 {
					t.Fatalf("after %d: %v", n, err)
				}
			}
		}
		for _, feed := range []Feed{PostsOf(ana), RecordsOf(ana, Posts), RecordsOf(ana, Reposts), Search("x")} {
			for _, m := range []service.Mark{{},
				{V: service.MarkVersion, Recent: []service.Seen{{ID: "9"}, {ID: at}}}} {
				tl, err := c.Timeline(feed, m, service.Reading{Limits: service.Limits{Pages: 30}})
				if err != nil {
					t.Fatal(err)
				}
				for n := 0; !tl.Done(); n++ {
					b, err := tl.Next(ctx)
					for _, p := range b.Posts {
						if p.ID == "" || p.Author.ID == "" || len(p.Text) > 4<<10 || !utf8.ValidString(p.Text) ||
							len(p.Tags) > maxTags || len(p.Raw) > 8<<10 {
							t.Errorf("%+v", p)
						}
					}
					if err != nil {
						break
					}
					if _, err := service.DecodeMark(tl.Mark().Encode()); err != nil || n > 100 {
						t.Fatalf("after %d: %v, %v", n, err, tl.Listing())
					}
				}
			}
		}
	})
}

// Any line is an event within the limits, or is rejected.
func FuzzEvent(f *testing.F) {
	f.Add([]byte(`{"did":"` + ana + `","time_us":1,"kind":"commit","commit":{"rev":"3k","operation":"create","collection":"` + Posts + `","rkey":"3k","cid":"b","record":{"text":"x"}}}`))
	f.Add([]byte(`{"did":"` + ana + `","time_us":1,"kind":"account","account":{"active":false,"status":"deleted"}}`))
	f.Add([]byte(`{"did":"` + ana + `","time_us":"1","kind":"identity","identity":{"handle":"a.b"}}`))
	c := canned(f, "")
	f.Fuzz(func(t *testing.T, b []byte) {
		e, ok := c.event(b)
		if !ok {
			return
		}
		if did(e.DID) == "" || e.At <= 0 ||
			(e.Kind == Created || e.Kind == Updated || e.Kind == Deleted) != (e.URI != "") || e.Post != nil &&
			len(e.Post.Text) > 4<<10 {
			t.Errorf("%+v", e)
		}
	})
}

// A record's address is parsed and formatted unchanged, or is rejected.
func FuzzURI(f *testing.F) {
	f.Add("at://" + ana + "/" + Posts + "/3k")
	f.Add("at://did:web:a.b%3A80/a.b.c/self")
	f.Add("did:web:%0a")
	f.Fuzz(func(t *testing.T, s string) {
		if u, err := ParseURI(s); err == nil && (u.String() != s || did(u.DID) == "") {
			t.Errorf("%q: %+v", s, u)
		}
		if id := did(s); id != "" {
			if base, _, err := DocumentAddress(id, "https://plc.test"); err != nil || origin(base) != base {
				t.Errorf("%q: %q %v", s, base, err)
			}
		}
	})
}
