package mastodon

import (
	"context"
	"net/http"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest/mastodontest"
	"github.com/echo-node/echo-node/crawler/service"
)

// A probe describes each kind of server correctly, can be encoded, and lists its doubts.
func TestProbe(t *testing.T) {
	obeys := Paging{service.Obeyed, service.Obeyed, service.Obeyed, service.Obeyed}
	first := visit(t, world{Seed: 4, People: 30, Quiet: true, Rate: -1})
	star, reader := first.w.Users()[0], user(first.w.Users()[2])
	for _, c := range []struct {
		name   string
		o      world
		token  bool
		want   Server // fields with a zero value are not compared
		unsure []string
	}{
		{name: "as documented", want: Server{Software: "mastodon", Version: "4.5.0", API: 7, Domain: "m.test",
			Batch: service.Obeyed, Timeline: obeys,
			Accounts: service.Open, Statuses: service.Open, Local: service.Open, Remote: service.Open,
			Tags: service.Open, Search: service.Open, Edges: service.Open}},
		{name: "GoToSocial, no token", o: world{Software: "gotosocial", Version: "0.20.1", IDs: mastodontest.ULIDs,
			Lies: lies{ClosedAPI: true, IgnoresSince: true, NoBatch: 405, NoSearch: true}},
			want:   Server{Software: "gotosocial", Accounts: service.Token, Local: service.Open, Search: service.Token},
			unsure: []string{"sample account"}},
		{name: "GoToSocial, token", token: true, o: world{Software: "gotosocial", Version: "0.20.1",
			IDs: mastodontest.ULIDs, Lies: lies{ClosedAPI: true, IgnoresSince: true, NoBatch: 405}},
			want: Server{WithAuth: true, Timeline: Paging{service.Obeyed, service.Obeyed, service.Ignored,
				service.Obeyed}, Batch: service.Ignored, Accounts: service.Open, Statuses: service.Open,
				Search: service.Open}},
		{name: "snac", token: true, o: world{Software: "snac", Version: "2.75", IDs: mastodontest.Hashes,
			Lies: lies{NoV2: true, IgnoresSince: true, IgnoresMin: true, IgnoresMax: true, IgnoresLimit: true,
				EmptyLists: true, OwnLists: true, NoBatch: 404, HTML404: true, NoPosts: true, FullAccts: true,
				NoLink: true}},
			want: Server{Software: "snac", Version: "2.75", Timeline: Paging{service.Ignored, service.Ignored,
				service.Ignored, service.Ignored}, Batch: service.Ignored, Lists: service.NotTheirs}},
		{name: "min_id as since_id", o: world{Lies: lies{MinIsSince: true}},
			want: Server{Timeline: Paging{service.Obeyed, service.Newest, service.Obeyed, service.Obeyed}}},
		{name: "oldest first", o: world{Lies: lies{Ascending: true}}, want: Server{Timeline: obeys}},
		{name: "pinned posts", o: world{Lies: lies{PinsFirst: true}}, want: Server{Timeline: obeys}},
		{name: "feeds disabled", o: world{Lies: lies{EmptyTimelines: true}},
			want: Server{Local: service.Disabled, Remote: service.Disabled, Tags: service.Disabled,
				Statuses: service.Open}},
		{name: "feeds empty, and nothing said", o: world{Lies: lies{EmptyTimelines: true, NoV2: true}},
			want: Server{Local: service.Silent, Remote: service.Silent, Tags: service.Silent}},
		{name: "feeds 401", o: world{Lies: lies{ClosedTimelines: 401}},
			want: Server{Local: service.Token, Remote: service.Token, Tags: service.Token}},
		{name: "feeds 422", o: world{Lies: lies{ClosedTimelines: 422}}, want: Server{Local: service.Token}},
		{name: "feeds 403", o: world{Lies: lies{ClosedTimelines: 403}}, want: Server{Local: service.Disabled}},
		{name: "old, no nodeinfo", o: world{Lies: lies{NoV2: true, NoNodeinfo: true}},
			want: Server{Software: "mastodon", Version: "4.5.0", Domain: "m.test"}, unsure: []string{"nodeinfo"}},
		{name: "pleroma by its version", o: world{Software: "pleroma", Version: "2.6.0", Lies: lies{NoNodeinfo: true}},
			want: Server{Software: "pleroma", Version: "2.6.0"}, unsure: []string{"nodeinfo"}},
		{name: "counts double", o: world{Lies: lies{CountsTimes: 2}}, want: Server{Lists: service.FewerThanClaim}},
	} {
		c.o.Seed, c.o.People, c.o.Quiet = 4, 30, true
		c.o.Start = since()
		c.o.Tokens = map[string]string{"s3cret": reader}
		p := visit(t, c.o, func(o *Options) {
			o.MaxBody = 4 << 20 // a page without a limit is long
			if c.token {
				o.Credential, _ = service.NewCredential("a", "s3cret")
			}
		})
		s, err := p.c.Probe(context.Background(), star)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got, want := reflect.ValueOf(s), reflect.ValueOf(c.want)
		for i := range want.NumField() {
			if f := want.Field(i); !f.IsZero() && !f.Equal(got.Field(i)) && want.Type().Field(i).Name != "Unsure" {
				t.Errorf("%s: %s is %v, want %v", c.name, want.Type().Field(i).Name, got.Field(i), f)
			}
		}
		var unsure []string
		for _, d := range s.Unsure {
			unsure = append(unsure, d.What)
		}
		if !slices.Equal(unsure, c.unsure) {
			t.Errorf("%s: unsure of %v, want %v", c.name, s.Unsure, c.unsure)
		}
		if n := p.w.Report().Requests; s.Calls != n || n > 20 {
			t.Errorf("%s: %d calls counted, %d made", c.name, s.Calls, n)
		}
		if s.WithAuth != c.token || !s.Fresh(s.Probed.Add(serverUnsure/2)) || s.Fresh(s.Probed.Add(serverFresh)) ||
			s.Fresh(s.Probed.Add(-2*time.Hour)) {
			t.Errorf("%s: fresh from %v to %v", c.name, s.Probed, s.Expires)
		}
		back, err := DecodeServer(s.Encode())
		if err != nil || !reflect.DeepEqual(back, s) {
			t.Errorf("%s: %+v comes back as %+v, %v", c.name, s, back, err)
		}
	}
}

// A probe of a server that is down learns nothing. With a rate limit it learns little, and expires
// soon.
func TestProbesOfServersThatAreNotThere(t *testing.T) {
	p := visit(t, world{Seed: 4, People: 20, Lies: lies{Down: http.StatusBadGateway}})
	if _, err := p.c.Probe(context.Background(), ""); service.WordOf(err) != service.Down {
		t.Errorf("down: %v", err)
	}
	p = visit(t, world{Seed: 4, People: 20, Limits: []mastodontest.Limit{{Max: 6, Window: time.Hour, All: true}}})
	s, err := p.c.Probe(context.Background(), "")
	if err != nil || len(s.Unsure) == 0 || s.Software != "mastodon" || s.Expires.Sub(s.Probed) != serverUnsure ||
		!slices.Contains(s.Unsure, service.Doubt{What: "posts of an account", Why: service.Limited}) {
		t.Errorf("limited: %+v %v", s, err)
	}
	p = visit(t, world{Seed: 4, People: 20, Rate: -1})
	if s, err = p.c.Probe(context.Background(), ""); err != nil || s.Statuses != "" ||
		!slices.ContainsFunc(s.Unsure, func(d service.Doubt) bool { return d.What == "sample account" }) {
		t.Errorf("nobody has posted: %+v %v", s, err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if _, err := p.c.Probe(ctx, ""); err == nil {
		t.Error("no error of a context that is done")
	}
}

// After a rate limit, the next probe asks only the open questions. Together they give the same
// result as one probe without a limit. In between the result is encoded and decoded.
func TestAProbeGoesOn(t *testing.T) {
	o := world{Seed: 4, People: 30, Quiet: true, Start: since(), Tokens: map[string]string{"s3cret": ""}}
	credential := func(o *Options) { o.Credential, _ = service.NewCredential("a", "s3cret") }
	whole := visit(t, o, credential)
	star := whole.w.Users()[0]
	want, err := whole.c.Probe(context.Background(), star)
	if err != nil || len(want.Unsure) != 0 {
		t.Fatalf("%+v %v", want, err)
	}
	// comparing a list with the owner's list needs five calls
	for _, most := range []int{5, 8, 13} {
		o.Limits = []mastodontest.Limit{{Max: most, Window: serverUnsure / 2, All: true, Rolling: true}}
		p := visit(t, o, credential)
		var s Server
		rounds, asked := 0, 0
		for ; rounds < 20 && !s.Fresh(p.clock.Now()); rounds++ {
			if s, err = p.c.Resume(context.Background(), star, s); err != nil {
				t.Fatalf("%d calls at a time: %v", most, err)
			}
			if s, err = DecodeServer(s.Encode()); err != nil {
				t.Fatal(err)
			}
			asked = p.w.Report().Requests - p.w.Report().Refused
			p.clock.add(serverUnsure + time.Second)
		}
		t.Logf("%d calls at a time: whole after %d, %d answered of %d calls, %d in one", most, rounds, asked, s.Calls,
			want.Calls)
		if len(s.Unsure) != 0 || s.Expires.Sub(s.Probed) != serverFresh || asked > want.Calls+2*rounds {
			t.Errorf("%d calls at a time: %+v", most, s)
		}
		got := s
		got.Calls, got.Probed, got.Expires = want.Calls, want.Probed, want.Expires
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%d calls at a time:\n%+v, want\n%+v", most, got, want)
		}
	}
	old := want
	old.Probed, old.Unsure = want.Probed.Add(-serverFresh), []service.Doubt{{What: "batch", Why: service.Limited}}
	before := whole.w.Report().Requests
	if s, err := whole.c.Resume(context.Background(), star, old); err != nil ||
		whole.w.Report().Requests-before < want.Calls || !s.Probed.Equal(whole.clock.Now()) {
		t.Errorf("what is too old is not begun anew: %+v %v", s, err)
	}
}

func FuzzDecodeServer(f *testing.F) {
	f.Add(Server{V: serverVersion, Base: "https://m.test", Lists: service.NotTheirs,
		Unsure: []service.Doubt{{What: "x", Why: service.Down}}}.Encode())
	f.Add([]byte(`{"v":2}`))
	f.Add([]byte(`{"v":1,"unsure":[],"languages":[]}`))
	f.Add([]byte(`{"v":1,"probed":"9999-12-31T23:59:59-23:59","unsure":[null]}`))
	f.Add([]byte(`{"v":1,"probed":"9999-12-31T3:59:59-24:59"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := DecodeServer(b)
		if err != nil {
			return
		}
		if again, err := DecodeServer(s.Encode()); err == nil && !reflect.DeepEqual(again, s) {
			t.Errorf("%+v comes back as %+v", s, again)
		}
		s.Fresh(time.Now())
	})
}
