package twitter

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/service"
)

// all calls every endpoint once and returns the first error.
func (p *place) all() error {
	ctx := context.Background()
	id := p.w.IDs()[0]
	truth := p.w.Truth()
	for _, x := range p.w.IDs() {
		if !truth.Accounts[x].Protected && !truth.Accounts[x].Suspended {
			id = x
		}
	}
	var errs []error
	_, _, err := p.c.Users(ctx, []string{id})
	errs = append(errs, err)
	_, _, err = p.c.UsersByName(ctx, []string{truth.Accounts[id].User})
	errs = append(errs, err)
	who, err := p.c.User(ctx, id)
	errs = append(errs, err)
	_, _, err = p.c.PostsByID(ctx, []string{"99"})
	errs = append(errs, err)
	for _, f := range []Feed{PostsOf(id), Search("comboio")} {
		tl, err := p.c.Timeline(f, service.Mark{}, service.Reading{})
		if err == nil {
			_, err = tl.Next(ctx)
		}
		errs = append(errs, err)
	}
	for _, side := range []service.Side{service.Followers, service.Following} {
		e, err := p.c.Edges(who, side, service.Limits{})
		if err == nil {
			_, err = e.Next(ctx)
		}
		errs = append(errs, err)
	}
	for i, err := range errs {
		if err != nil {
			return fmt.Errorf("%d: %w", i, err)
		}
	}
	return nil
}

const endpoints = 8

// has reports whether the query of a call has a value in a parameter.
func has(c service.Call, param, value string) bool {
	u, err := url.Parse(c.Request.URL)
	return err == nil && slices.Contains(strings.Split(u.Query().Get(param), ","), value)
}

// An API accepts only the newer spelling. After one refused call, with any text, it is requested in
// that spelling. After a restart with an empty Dialect, the cost is the same.
func TestSpellingIsLearned(t *testing.T) {
	for _, form := range []string{"", "Unknown query parameter: PARAM.", "PARAM VALUE is not allowed here",
		`"PARAM" is not a parameter, and 'VALUE' is not a value`, "Bad request"} {
		p := visit(t, world{Seed: 3, People: 10, Lies: lies{OnlyPosts: true, Posts: true, Refusal: form}})
		for i := range 2 {
			if err := p.all(); err != nil {
				t.Fatalf("%q: %v", form, err)
			}
			if i == 0 && len(p.asked) > endpoints+2 { // one for each of the two forms of a refusal
				t.Errorf("%q: %d calls for %d answers", form, len(p.asked), endpoints)
			}
			if i == 1 && len(p.asked) != endpoints {
				t.Errorf("%q: learned, and %d calls for %d answers", form, len(p.asked), endpoints)
			}
			for _, c := range p.asked[len(p.asked)-endpoints:] {
				if !has(c, "user.fields", "protected") || strings.Contains(c.Request.URL, "tweet.fields") {
					t.Errorf("%q: %s", form, c.Request.URL)
				}
			}
			p.asked = nil
		}
	}
}

// A refused field is not requested for a day; all other fields are.
func TestLessIsAskedFor(t *testing.T) {
	p := visit(t, world{Seed: 3, People: 10,
		Lies: lies{Refuses: []string{"most_recent_tweet_id", "most_recent_post_id", "note_tweet", "media.fields",
			"user.fields withheld"}}})
	for range 2 {
		if err := p.all(); err != nil {
			t.Fatal(err)
		}
	}
	learned := p.asked[len(p.asked)-endpoints:]
	if n := len(p.asked) - 2*endpoints; n == 0 || n > 5*endpoints {
		t.Errorf("%d refused calls", n)
	}
	for _, c := range learned {
		if !has(c, "user.fields", "protected") || !has(c, "user.fields", "public_metrics") ||
			has(c, "user.fields", "withheld") || strings.Contains(c.Request.URL, "most_recent") {
			t.Error(c.Request.URL)
		}
		if c.Class == ClassPosts && (!has(c, "tweet.fields", "withheld") && !has(c, "post.fields", "withheld") ||
			strings.Contains(c.Request.URL, "media.fields")) {
			t.Error(c.Request.URL)
		}
	}
	p.w.Lie(func(l *lies) { *l = lies{} })
	p.clock.Add(25 * time.Hour)
	p.asked = nil
	if err := p.all(); err != nil || len(p.asked) != endpoints || !has(p.asked[0], "user.fields", "withheld") {
		t.Errorf("after a day: %v, %d calls, %s", err, len(p.asked), p.asked[0].Request.URL)
	}
}

// With any refusals, a call ends after few requests. Without the fields for the author and for
// protected accounts, nothing is read. A permanent refusal is not paid for again and again.
func TestRefusalsEnd(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var l lies
		switch rapid.IntRange(0, 2).Draw(rt, "kind") {
		case 0:
			l.Refused = rapid.SampledFrom([]string{"x", "", "One is wrong: [id]",
				"The `user.fields` query parameter value [protected] is bad",
				"[tweet.fields] [post.fields] [user.fields] [expansions]",
				"The 'ids' query parameter value [99] is not valid",
				"tweet.fields post.fields media.fields note_tweet note_post referenced_tweets referenced_posts",
				strings.Repeat("[a_b] ", 5000)}).Draw(rt, "says")
		case 1:
			l.OnlyPosts = rapid.Bool().Draw(rt, "only posts")
			fallthrough
		default:
			every := []string{"tweet.fields", "post.fields", "media.fields", "expansions", "user.fields"}
			for _, w := range []Spelling{Tweet, PostS} {
				for _, vs := range wanted(w, true) {
					every = append(every, vs...)
				}
			}
			slices.Sort(every)
			l.Refuses = rapid.SliceOfN(rapid.SampledFrom(every), 1, 60).Draw(rt, "refuses")
			l.Refusal = rapid.SampledFrom([]string{"", "PARAM", "VALUE", "[VALUE]", "no"}).Draw(rt, "form")
		}
		p := visit(rt, world{Seed: 3, People: 5, Quiet: true, Rate: -1, Lies: l})
		id := p.w.IDs()[0]
		last := 0
		for range 8 {
			p.asked = nil
			_, _, err := p.c.Users(context.Background(), []string{id})
			if err != nil && service.WordOf(err) != service.Refused {
				rt.Fatalf("%+v: %v", l, err)
			}
			if last = len(p.asked); last > maxTries {
				rt.Fatalf("%+v: %d calls for one question", l, last)
			}
			for _, c := range p.asked {
				if !has(c, "user.fields", "protected") || !has(c, "user.fields", "id") {
					rt.Fatalf("%+v: asked without what is needed: %s", l, c.Request.URL)
				}
			}
		}
		if last > 1 {
			rt.Fatalf("%+v: the eighth time %d calls", l, last)
		}
	})
}

// A refusal that repeats a person's search text teaches nothing about the API. A refusal about the
// query itself causes no second request.
func TestQueriesDoNotTeach(t *testing.T) {
	query := "[withheld] 'lang' tweet.fields note_tweet"
	for _, says := range []string{"Reference to an invalid operator: " + query,
		"The `query` query parameter value [" + query + "] is wrong near [tweet.fields]"} {
		p := visit(t, world{Seed: 3, People: 5, Lies: lies{Refused: says}})
		tl, err := p.c.Timeline(Search(query), service.Mark{}, service.Reading{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err = tl.Next(context.Background()); service.WordOf(err) != service.Refused || len(p.asked) > 2 {
			t.Errorf("%q: %v, %d calls", says, err, len(p.asked))
		}
		p.w.Lie(func(l *lies) { *l = lies{} })
		p.asked = nil
		if tl, err = p.c.Timeline(Search("comboio"), service.Mark{}, service.Reading{}); err == nil {
			_, err = tl.Next(context.Background())
		}
		if err != nil || len(p.asked) != 1 || !has(p.asked[0], "tweet.fields", "lang") ||
			!has(p.asked[0], "tweet.fields", "note_tweet") || !has(p.asked[0], "tweet.fields", "withheld") {
			t.Errorf("%q: %v, %v", says, err, p.asked)
		}
	}
	p := visit(t, world{Seed: 3, People: 5, Lies: lies{RefusesToken: true}})
	_, err := p.c.page(context.Background(), PostsOf(p.w.IDs()[0]), "b26v1", service.Seen{})
	if service.WordOf(err) != service.Refused || len(p.asked) != 1 {
		t.Errorf("a token: %v, %d calls", err, len(p.asked))
	}
}

// Many goroutines use one Dialect.
func TestDialectIsShared(t *testing.T) {
	p := visit(t, world{Seed: 3, People: 10, Rate: -1, Lies: lies{OnlyPosts: true, Refuses: []string{"withheld"}}})
	var mu sync.Mutex
	o := Options{Base: "https://api.x.test", Dialect: &Dialect{}, Now: p.clock.Now,
		Do: func(ctx context.Context, call service.Call) (*fetch.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			if u, err := url.Parse(call.Request.URL); err != nil || strings.Contains(u.RawQuery, "tweet") ||
				strings.Contains(u.RawQuery, "withheld") {
				body := `{"errors":[{"parameters":{"user.fields":["x"]},"message":"The user.fields query parameter value [pinned_tweet_id] is not one of []"},{"message":"The user.fields query parameter value [withheld] is not one of []"}]}`
				return &fetch.Response{Status: http.StatusBadRequest, Header: http.Header{}, Body: []byte(body)}, err
			}
			return &fetch.Response{Status: http.StatusOK, Header: http.Header{},
				Body: []byte(`{"data":[{"id":"1","username":"a"}]}`)}, nil
		}}
	var all sync.WaitGroup
	for range 8 {
		c, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			if found, _, err := c.Users(context.Background(), []string{"1"}); err != nil || len(found) != 1 {
				t.Errorf("%v %v", found, err)
			}
		})
	}
	all.Wait()
}

func FuzzNamesIn(f *testing.F) {
	f.Add("The `user.fields` query parameter value [pinned_tweet_id] is not one of [id,name]")
	f.Add("'a', \"b\" .. [c,d e_f")
	f.Fuzz(func(t *testing.T, text string) {
		if names := namesIn(text); len(names) > maxNames || slices.Contains(names, "") {
			t.Error(names)
		}
	})
}
