package node_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest/mastodontest"
	"github.com/echo-node/echo-node/crawler/judge/community"
	"github.com/echo-node/echo-node/crawler/social"
	"github.com/echo-node/echo-node/crawler/social/follow"
	"github.com/echo-node/echo-node/node"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/node/nodetest"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/racetest"
	"github.com/echo-node/echo-node/store"
)

// byPlace judges by the place in a profile.
func byPlace(p community.Profile, _ []string, _ community.Edges) community.Verdict {
	v := community.Verdict{Verdict: community.IsUndecided, Score: 0.5, Evidence: []community.Evidence{}}
	for _, f := range p.Fields {
		switch f.Value {
		case "Braga", "Évora", "Coimbra", "Aveiro", "Faro", "Setúbal":
			v = community.Verdict{Verdict: community.IsIn, Score: 0.97,
				Evidence: []community.Evidence{{Kind: "place", Text: f.Value, Weight: 3}}}
		case "Cádiz", "Zamora", "Jaén", "León", "Soria", "Gijón":
			v = community.Verdict{Verdict: community.IsOut, Score: 0.01,
				Evidence: []community.Evidence{{Kind: "place", Text: f.Value, Weight: -4}}}
		}
	}
	return v
}

// village starts a server on loopback.
func village(t *testing.T, host string, o mastodontest.Options) *mastodontest.World {
	t.Helper()
	w, stop, err := mastodontest.Serve(host+":0", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// liked returns the most followed of the users who may be followed.
func liked(t *testing.T, w *mastodontest.World) string {
	t.Helper()
	for _, u := range w.Users() {
		if a := w.Truth().Accounts[u]; !strings.Contains(strings.ToLower(a.Bio), "#nobot") {
			return u
		}
	}
	t.Fatal("nobody may be followed")
	return ""
}

func accountOf(t *testing.T, acct string) partition.Key {
	t.Helper()
	k, err := partition.ParseKey("mastodon:" + acct)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// A swarm judges the accounts that it finds, and any peer reports the verdicts. A person may give
// an override to any peer. It replaces the judge's verdict at the owner and everywhere, also after
// a hand-over and a restart.
func TestAPersonOverrulesTheJudge(t *testing.T) {
	racetest.Skip(t)
	t.Parallel()
	w := village(t, "127.77.202.1", mastodontest.Options{Seed: 21, People: 40, Remote: -1, Quiet: true})
	first := liked(t, w)
	rules := follow.Rules{Follow: follow.Community, Judge: byPlace, Community: "by-place@1"}
	s := nodetest.New(t, nodetest.Options{World: smallWorld(),
		Node: node.Options{SliceBits: 6, Fanout: 16, Overrides: partition.OverridesMembers,
			Social: social.Options{Lists: true, Rules: rules}}})
	for range 3 {
		s.Add()
	}
	s.Settle(3)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if err := s.Peers[0].SeedUntilDone(ctx, []partition.Key{accountOf(t, first)}); err != nil {
		t.Fatal(err)
	}
	var judged []partition.Key // judged in, and not seeds
	s.Until("some are found and judged", 2*time.Minute, func() (bool, string) {
		words := map[string]int{}
		judged = nil
		for _, acct := range w.Users() {
			k := accountOf(t, acct)
			shown, err := s.Peers[1].API().Show(ctx, k)
			if err != nil || shown.Record == nil || shown.Record.Verdict == nil {
				continue
			}
			if words[shown.Record.VerdictWord()]++; shown.Record.VerdictWord() == community.IsIn && acct != first {
				judged = append(judged, k)
			}
		}
		return len(judged) > 1 && words[community.IsOut] > 1, ""
	})
	k := judged[0]
	said := func(from *nodetest.Peer, verdict string) (bool, string) {
		shown, err := from.API().Show(ctx, k)
		if err != nil || shown.Record == nil || shown.Record.Verdict == nil {
			return false, fmt.Sprint(err)
		}
		v := shown.Record.Verdict
		return v.Verdict == verdict && len(shown.Overrides) > 0 &&
			(verdict != community.IsOut || v.Override != nil && v.Override.By == "rui" && v.Judged != nil &&
				v.Judged.Verdict == community.IsIn), v.Verdict
	}
	i := slices.IndexFunc(s.Peers, func(p *nodetest.Peer) bool {
		o, err := p.API().Owner(ctx, k)
		return err == nil &&
			o.Self
	})
	if i < 0 {
		t.Fatal("nobody owns it")
	}
	owner, other := s.Peers[i], s.Peers[(i+1)%3]
	if err := other.API().Overrule(ctx, store.Override{Key: k, Verdict: community.IsOut, By: "rui",
		Why: "a twin"}); err != nil {
		t.Fatal(err)
	}
	for _, p := range s.Peers {
		if ok, what := said(p, community.IsOut); !ok {
			t.Errorf("%s: %s", p.Name, what)
		}
	}
	for name, bad := range map[string]store.Override{"no account": {Key: "web:https://a.test/", Verdict: community.IsIn,
		By: "rui"}, "nobody's": {Key: k, Verdict: community.IsIn}} {
		for _, p := range s.Peers {
			if err := p.API().Overrule(ctx, bad); err == nil {
				t.Errorf("%s: taken", name)
			}
		}
	}
	stranger := accountOf(t, "stranger@"+w.Domain())
	if err := other.API().Overrule(ctx, store.Override{Key: stranger, Verdict: community.IsOut,
		By: "rui"}); err != nil {
		t.Error(err)
	}
	if shown, err := owner.API().Show(ctx, stranger); err != nil || !shown.Known || len(shown.Overrides) != 1 {
		t.Errorf("%+v, %v", shown, err)
	}
	s.Until("the word is found", time.Minute, func() (bool, string) {
		a, err := other.API().Query(ctx, api.Query{Kind: store.KindProfile,
			Facets: api.Facets{Verdict: community.IsOut},
			Limit:  100})
		sum := int64(0)
		for _, p := range s.Peers {
			sum += p.Status().Verdicts[community.IsOut]
		}
		at := slices.IndexFunc(a.Hits, func(h api.Hit) bool { return h.Key == k && h.Verdict == community.IsOut })
		return err == nil && at >= 0 && sum == int64(len(a.Hits)),
			fmt.Sprintf("%d of %d hits, the status counts %d, err %v", at, len(a.Hits), sum, err)
	})
	m, err := s.Peers[2].API().Mistakes(ctx)
	if err != nil || m.Overrides != 1 || m.Judged != 1 || len(m.Mistakes) != 1 || m.Mistakes[0].Override.Key != k ||
		m.Kinds["place"] != 3 {
		t.Errorf("%+v, %v", m, err)
	}
	if left := owner.HandOver(ctx); left > 0 {
		t.Errorf("%d slices were not handed over", left)
	}
	if err := owner.Stop(); err != nil {
		t.Fatal(err)
	}
	s.Until("the word is there at the new owner", time.Minute, func() (bool, string) {
		return said(other,
			community.IsOut)
	})
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	s.Settle(3)
	s.Until("and after a restart", time.Minute, func() (bool, string) { return said(owner, community.IsOut) })
	s.Until("it is taken back", time.Minute, func() (bool, string) {
		err := owner.API().Overrule(ctx, store.Override{Key: k, By: "rui"})
		if err != nil && !errors.Is(err, api.ErrUnavailable) {
			t.Error(err)
		}
		return err == nil, fmt.Sprint(err)
	})
	s.Until("the judge's again", time.Minute, func() (bool, string) { return said(other, community.IsIn) })
}
