package twitter

import (
	"context"
	"net/http"
	"testing"
	"unicode/utf8"

	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/service"
)

// canned returns a client of an API that always responds with body.
func canned(t testing.TB, status int, body string) *Client {
	t.Helper()
	c, err := New(Options{Base: "https://api.test", MaxText: 4 << 10, MaxRaw: 8 << 10,
		Do: func(context.Context, service.Call) (*fetch.Response, error) {
			return &fetch.Response{Status: status, Header: http.Header{}, Body: []byte(body)}, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Tests the Word of refusals, by their text.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		word   service.Word
		code   string
	}{
		{429, `{"errors":[{"code":88,"message":"Rate limit exceeded"}]}`, service.Limited, ""},
		{429, `{"title":"UsageCapExceeded","type":"https://api.twitter.com/2/problems/usage-capped"}`, service.Spent,
			"usage-capped"},
		{403, `{"title":"Unsupported Authentication","type":"https://api.twitter.com/2/problems/unsupported-authentication","detail":"x"}`, service.Closed, "unsupported-authentication"},
		{401, `{"title":"Unauthorized","type":"about:blank"}`, service.NeedsToken, "about:blank"},
		{400, `{"errors":[{"message":"bad"}],"title":"Invalid Request","type":"https://api.twitter.com/2/problems/invalid-request"}`, service.Refused, "invalid-request"},
		{200, `{"errors":[{"detail":"Could not find user","type":"https://api.twitter.com/2/problems/resource-not-found"}]}`, service.Gone, "resource-not-found"},
		{200, `{"errors":[{"detail":"no","type":"https://api.twitter.com/2/problems/not-authorized-for-resource"}]}`,
			service.Closed, "not-authorized-for-resource"},
		{200, `{"x":1}`, service.Misshapen, ""}, {200, `[]`, service.Misshapen, ""},
		{200, `{"data":[]}`, service.Misshapen, ""}, {200, `{"data":{"id":"2","username":"b"}}`, service.Misshapen,
			""},
		{503, `<html>`, service.Down, ""},
	} {
		_, err := canned(t, c.status, c.body).User(context.Background(), "1")
		if f, ok := err.(*service.Fault); !ok || f.Word != c.word || f.Code != c.code {
			t.Errorf("%d %s: %v", c.status, c.body, err)
		}
	}
}

// With any response, a client returns posts and profiles within its limits, or a Fault. It does not
// panic or loop endlessly.
func FuzzAnswers(f *testing.F) {
	for _, s := range []string{
		`{"data":[{"id":"1","username":"ana","public_metrics":{"followers_count":3},"entities":{"url":{"urls":[{"expanded_url":"https://x.test/"}]}}}],"meta":{"next_token":"x","result_count":1}}`,
		`{"data":[{"id":"5","author_id":"1","text":"x","referenced_posts":[{"type":"retweeted","id":"4"}],"edit_history_post_ids":["3","5"]}],"includes":{"posts":[{"id":"4","text":"y"}],"users":[{"id":"1","username":"a"}],"media":[{"media_key":"k"}]},"meta":{"result_count":1}}`,
		`{"data":[{"id":"5","text":"x","note_tweet":{"text":"long","entities":{"hashtags":[{"tag":"T"}],"mentions":[{"username":"b"}]}},"attachments":{"media_keys":["k"]}}],"errors":[{"value":"7","detail":"suspended","type":"a/b"}]}`,
		`{"data":{"id":"1","username":"ana"}}`, `{"errors":[null,1,{}]}`, `{"data":null,"meta":{"result_count":0}}`,
		`<html>`, ``,
	} {
		f.Add(200, s)
		f.Add(429, s)
	}
	f.Fuzz(func(t *testing.T, status int, body string) {
		c, ctx := canned(t, status, body), context.Background()
		_, _ = c.User(ctx, "1")
		users, absent, _ := c.Users(ctx, []string{"1", "7"})
		_, _, _ = c.UsersByName(ctx, []string{"ana"})
		_, _, _ = c.PostsByID(ctx, []string{"5"})
		if len(users)+len(absent) > 2 {
			t.Errorf("%d users, %d absent", len(users), len(absent))
		}
		e, err := c.Edges(Profile{ID: "1"}, service.Followers, service.Limits{Pages: 30})
		if err != nil {
			t.Fatal(err)
		}
		for n := 0; !e.Done(); n++ {
			page, err := e.Next(ctx)
			for _, p := range page {
				if number(text(p.ID)) == "" || p.Acct == "" || p.Followers < -1 || len(p.Links) > maxLinks ||
					len(p.Raw) > 8<<10 {
					t.Errorf("%+v", p)
				}
			}
			if err != nil {
				break
			}
			if _, err := c.ResumeEdges(e.Checkpoint(), service.Limits{}); err != nil || n > 40 {
				t.Fatalf("after %d: %v", n, err)
			}
		}
		for _, feed := range []Feed{PostsOf("1"), Search("x")} {
			for _, m := range []service.Mark{{},
				{V: service.MarkVersion, Recent: []service.Seen{{ID: "5"}, {ID: "4"}}}} {
				tl, err := c.Timeline(feed, m, service.Reading{Limits: service.Limits{Pages: 30}})
				if err != nil {
					t.Fatal(err)
				}
				for n := 0; !tl.Done(); n++ {
					b, err := tl.Next(ctx)
					for _, p := range b.Posts {
						if number(text(p.ID)) == "" || len(p.Text) > 4<<10 || !utf8.ValidString(p.Text) ||
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
