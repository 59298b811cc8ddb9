package mastodon

import (
	"context"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/service"
)

// canned returns a client of a server that always responds with body.
func canned(t testing.TB, body string, head http.Header) *Client {
	t.Helper()
	if head == nil {
		head = http.Header{}
	}
	c, err := New(Options{Base: "https://m.test", MaxText: 4 << 10, MaxRaw: 8 << 10,
		Do: func(context.Context, service.Call) (*fetch.Response, error) {
			return &fetch.Response{Status: 200, Header: head, Body: []byte(body)}, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Tests responses that real servers send and that differ from the documentation.
func TestDecodingIsTolerant(t *testing.T) {
	for _, c := range []struct {
		json string
		want Profile // fields with a zero value are not compared; Acct "" = no profile
	}{
		{`{"id":"1","acct":"ana"}`, Profile{ID: "1", Acct: "ana@m.test", Local: true, Followers: -1}},
		{`{"id":115988889665536000,"acct":"ana"}`, Profile{ID: "115988889665536000", Acct: "ana@m.test"}},
		{`{"id":"1","acct":"Ana@M.Test","username":"Ana"}`, Profile{Acct: "Ana@m.test", Local: true}},
		{`{"id":"1","acct":"ana@far.test"}`, Profile{Acct: "ana@far.test"}},
		{`{"id":"1","username":"ana"}`, Profile{Acct: "ana@m.test"}},
		{`{"id":"1","acct":"ana","followers_count":"12","following_count":1e3,"statuses_count":null}`,
			Profile{ID: "1", Acct: "ana@m.test", Followers: 12, Following: 1000, Posts: -1}},
		{`{"id":"1","acct":"ana","followers_count":-5,"following_count":{},"statuses_count":1e99}`,
			Profile{ID: "1", Acct: "ana@m.test", Followers: -1, Following: -1, Posts: -1}},
		{`{"id":"1","acct":"ana","bot":"true","locked":1,"suspended":null,"discoverable":null,"indexable":false,"noindex":true}`,
			Profile{ID: "1", Acct: "ana@m.test", Bot: true, Locked: true, Indexable: service.No, NoIndex: service.Yes,
				OptOuts: []OptOut{OptNoIndex, OptNotIndexable}}},
		{`{"id":"1","acct":"ana","created_at":"2026-11-22T02:36:50Z","last_status_at":"2026-11-22"}`,
			Profile{ID: "1", Acct: "ana@m.test", Created: time.Date(2026, 11, 22, 2, 36, 50, 0, time.UTC),
				LastPost: time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)}},
		{`{"id":"1","acct":"ana","created_at":"yesterday","last_status_at":12,"note":["x"],"fields":{"name":"x"},"moved":"nowhere"}`, Profile{ID: "1", Acct: "ana@m.test"}},
		{`{"id":"1","acct":"ana","note":"<p>Um. <a href=\"https://m.test/tags/NoBot\">#<span>NoBot</span></a></p>","fields":[{"name":"x","value":"#noArchive!"}, null, 3]}`,
			Profile{ID: "1", Acct: "ana@m.test", Note: "Um. #NoBot", OptOuts: []OptOut{OptNoBotTag, OptNoArchiveTag}}},
		{`{"id":"1","acct":"ana","note":"#nobotany a#nobot_"}`,
			Profile{ID: "1", Acct: "ana@m.test", Note: "#nobotany a#nobot_"}},
		{`{"id":"1","acct":"ana","moved":{"id":2,"acct":"rui@far.test","moved":{"id":"3"}}}`,
			Profile{ID: "1", Acct: "ana@m.test", Moved: &Move{"2", "rui@far.test", ""}}},
		{`{"id":"1","acct":"ana","pleroma":{"hide_followers":true,"deactivated":true}}`,
			Profile{ID: "1", Acct: "ana@m.test", Suspended: true, HidesLists: service.Yes}},
		{`{"id":"1","acct":"ana","url":"javascript:alert(1)","avatar":"data:x","display_name":"a\u0000b\nc"}`,
			Profile{ID: "1", Acct: "ana@m.test", Name: "a b c"}},
		{`{"id":"","acct":"ana"}`, Profile{}}, {`{"id":null,"acct":"ana"}`, Profile{}}, {`{"id":"1"}`, Profile{}},
		{`{"id":"1","acct":"a b"}`, Profile{}},
		{`{"id":"1","acct":"@@"}`, Profile{}}, {`{}`, Profile{}}, {`[]`, Profile{}},
		{`[{"id":"1","acct":"ana"}]`, Profile{}},
	} {
		p, err := canned(t, c.json, nil).oneProfile("x", answer{body: []byte(c.json)})
		if c.want.Acct == "" {
			if service.WordOf(err) != service.Misshapen {
				t.Errorf("%s: %+v %v", c.json, p, err)
			}
			continue
		}
		got, want := reflect.ValueOf(p), reflect.ValueOf(c.want)
		for i := range want.NumField() {
			if f := want.Field(i); !f.IsZero() && !reflect.DeepEqual(f.Interface(), got.Field(i).Interface()) {
				t.Errorf("%s: %s is %v, want %v", c.json, want.Type().Field(i).Name, got.Field(i), f)
			}
		}
		if len(p.OptOuts) != len(c.want.OptOuts) || err != nil || p.URL != "" && !strings.HasPrefix(p.URL, "http") {
			t.Errorf("%s: %+v %v", c.json, p, err)
		}
	}
}

// Long lists, deep nesting and long texts are cut.
func TestDecodingIsCapped(t *testing.T) {
	account := `{"id":"1","acct":"ana"}`
	many := func(s string, n int) string { return "[" + strings.TrimSuffix(strings.Repeat(s+",", n), ",") + "]" }
	post := `{"id":"1","account":` + account + `,"content":"` + strings.Repeat("é ",
		10_000) + `","tags":` + many(`{"name":"x"}`, 3000) + `,"mentions":` + many(`{"id":"1","acct":"a"}`, 3000) +
		`,"media_attachments":` + many(`{"id":"1"}`,
		3000) + `,"reblog":{"id":"2","account":` + account + `,"reblog":{"id":"3","account":` + account + `}}}`
	c := canned(t, "", nil)
	p, ok := c.post([]byte(post), false, authors{})
	if !ok || len(p.Text) > 4<<10 || !utf8.ValidString(p.Text) || len(p.Tags) != 1 || len(p.Mentions) != maxMentions ||
		len(p.Media) != maxMedia || p.Raw != nil || p.Boost == nil || p.Boost.Boost != nil {
		t.Errorf("%v: %d bytes, %d tags, %d mentions, %d media, %d raw", ok, len(p.Text), len(p.Tags), len(p.Mentions),
			len(p.Media), len(p.Raw))
	}
	if all, _, ok := c.profiles([]byte(many(account, 5000))); !ok || len(all) != service.MaxList {
		t.Errorf("%d profiles", len(all))
	}
	deep := strings.Repeat(`{"reblog":`, 20_000) + "1" + strings.Repeat("}", 20_000)
	if _, ok := c.post([]byte(deep), false, authors{}); ok {
		t.Error("a post without a bottom")
	}
}

func TestNextPage(t *testing.T) {
	for _, c := range []struct {
		link, next string
		any        bool
	}{
		{`<https://m.test/api/v1/accounts/1/followers?limit=80&max_id=7>; rel="next", <https://m.test/x?since_id=9>; rel="prev"`, "max_id=7", true},
		{`<https://m.test/x?min_id=9>; rel="prev"`, "", true},
		{`<http://internal:3000/x?max_id=a%2Cb,c>; rel=next`, "max_id=a%2Cb%2Cc", true},
		{`<?max_id=7&access_token=x>;rel="NEXT"`, "max_id=7", true},
		{`<https://m.test/x?max_id=1>; rel="next", <https://m.test/x?max_id=2>; rel="next"`, "max_id=1", true},
		{`<https://m.test/x?` + strings.Repeat("a", service.MaxCursor+1) + `>; rel="next"`, "", true},
		{`<https://m.test/style.css>; rel="preload"`, "", false},
		{`nonsense, <, >, <>; rel="next"`, "", true},
		{``, "", false}, {strings.Repeat("<a?b=c>; rel=next,", 10_000), "", false},
	} {
		if next, any := nextPage(http.Header{"Link": {c.link}}); next != c.next || any != c.any {
			t.Errorf("%.80s: %q %v, want %q %v", c.link, next, any, c.next, c.any)
		}
	}
}

// With any response, a client returns posts and profiles within its limits, or a Fault, and does
// not panic.
func FuzzAnswers(f *testing.F) {
	for _, s := range []string{
		`[{"id":"1","acct":"ana","note":"<p>x</p>","fields":[{"name":"a","value":"b"}],"moved":{"id":1}}]`,
		`[{"id":1,"account":{"id":2,"acct":"a@b.c"},"content":"<p>x <a href='/y'>z</a></p>","created_at":"2026-01-01T00:00:00Z","tags":[{"name":"T"}],"mentions":[{"acct":"q"}],"reblog":{"id":"3"},"quote":{"quoted_status":{}},"poll":{"options":[{"title":"x"}]}}]`,
		`{"accounts":[],"statuses":null,"hashtags":[{"name":"x"}]}`, `{"error":"x"}`, `[null,1,"x",[],{}]`,
		`{"version":"4.0.0 (not true; really snac/2.75)","uri":"https://m.test/"}`, `<html>`, ``,
	} {
		f.Add(s, `<https://m.test/x?max_id=7>; rel="next"`)
	}
	f.Fuzz(func(t *testing.T, body, link string) {
		c, ctx := canned(t, body, http.Header{"Link": {link}, "X-Ratelimit-Reset": {link}}), context.Background()
		whole := func(p Profile) {
			if p.ID == "" || strings.Count(p.Acct, "@") != 1 || len(p.Note) > 4<<10 || len(p.Fields) > maxFields ||
				len(p.Links) > maxLinks || len(p.Raw) > 8<<10 || p.Followers < -1 || len(p.Name) > service.MaxName {
				t.Errorf("%+v", p)
			}
			_, _ = p.Key() // some names are not valid keys
		}
		for _, ask := range []func() (Profile, error){
			func() (Profile, error) { return c.Lookup(ctx, "ana") },
			func() (Profile, error) { return c.Account(ctx, "1") },
		} {
			if p, err := ask(); err == nil {
				whole(p)
			}
		}
		found, _, _ := c.Accounts(ctx, []string{"1", "2"})
		posts, _, _ := c.PostsByID(ctx, []string{"1", "2"})
		got, _ := c.Search(ctx, SearchPosts, "x", 0)
		_, _ = c.History(ctx, "1")
		_, _ = c.Probe(ctx, "ana")
		e, err := c.Edges(Profile{ID: "1"}, service.Followers, "", service.Limits{Pages: 30})
		if err != nil {
			t.Fatal(err)
		}
		for n := 0; !e.Done(); n++ {
			page, err := e.Next(ctx)
			found = append(found, page...)
			if _, again := c.ResumeEdges(e.Checkpoint(), "", service.Limits{}); again != nil || n > 40 {
				t.Fatalf("after %d: %v, %v", n, again, e.Listing())
			}
			if err != nil {
				break
			}
		}
		for _, m := range []service.Mark{{}, {V: service.MarkVersion, Recent: []service.Seen{{ID: "9"}, {ID: "8"}}}} {
			tl, err := c.Timeline(PostsOf("1"), m, Reading{Limits: service.Limits{Pages: 30}})
			if err != nil {
				t.Fatal(err)
			}
			for n := 0; !tl.Done(); n++ {
				b, err := tl.Next(ctx)
				posts = append(posts, b.Posts...)
				if _, again := service.DecodeMark(tl.Mark().Encode()); again != nil || n > 80 {
					t.Fatalf("after %d: %v, %v", n, again, tl.Listing())
				}
				if err != nil {
					break
				}
			}
		}
		for _, p := range append(found, got.Profiles...) {
			whole(p)
		}
		for _, p := range append(posts, got.Posts...) {
			if whole(p.Author); p.ID == "" || len(p.Text) > 4<<10 || !utf8.ValidString(p.Text) ||
				len(p.Tags) > maxTags {
				t.Errorf("%+v", p)
			}
		}
	})
}

// Bytes that are not a Mark or a Checkpoint are rejected; valid ones are re-encoded unchanged.
func FuzzMark(f *testing.F) {
	f.Add(service.Mark{Recent: []service.Seen{{ID: "1", At: noon}}, Base: []service.Seen{{ID: "2", At: noon}},
		Walk: &service.Walk{Top: []service.Seen{{ID: "1", At: noon}},
			Trail: trail{Cursor: "max_id=1", Power: 2}}}.Encode())
	f.Add([]byte(`{"v":1,"recent":[{"id":""}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := service.DecodeMark(b); err == nil && len(b) > 0 {
			if _, err := service.DecodeMark(m.Encode()); err != nil {
				t.Errorf("%s: %v", b, err)
			}
			c := canned(t, `[{"id":"1","account":{"id":"2","acct":"a"}}]`, nil)
			tl, err := c.Timeline(PostsOf("1"), m, Reading{Limits: service.Limits{Pages: 20}})
			if err != nil {
				t.Fatal(err)
			}
			for n := 0; !tl.Done() && n < 50; n++ {
				if _, err := tl.Next(context.Background()); err != nil {
					return
				}
			}
			if !tl.Done() {
				t.Errorf("%s: no end", b)
			}
		}
		if e, err := canned(t, "", nil).ResumeEdges(b, "", service.Limits{}); err == nil && len(e.Checkpoint()) == 0 {
			t.Error("no bytes")
		}
	})
}
