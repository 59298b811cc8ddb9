package social_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest/mastodontest"
	"github.com/echo-node/echo-node/crawler/judge/community"
	"github.com/echo-node/echo-node/crawler/social"
	"github.com/echo-node/echo-node/crawler/social/follow"
	"github.com/echo-node/echo-node/store"
)

// An undecided account is judged again when more is known, and costs no call until then. A human
// override is applied at once, in either direction, and can be taken back.
func TestAPersonsWordIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := world(t, mastodontest.Options{Seed: 21, People: 30, Remote: -1, Quiet: true, Rate: -1})
		var acct string
		for _, u := range w.Users() {
			if !wishes(w.Truth().Accounts[u]) {
				acct = u
				break
			}
		}
		if _, err := w.Post(acct, "Bom dia"); err != nil {
			t.Fatal(err)
		}
		var judged, texts atomic.Int64
		rules := follow.Rules{Follow: follow.Community, Community: "x@1",
			Judge: func(_ community.Profile, said []string, _ community.Edges) community.Verdict {
				judged.Add(1)
				texts.Store(int64(len(said)))
				return community.Verdict{Verdict: community.IsUndecided, Score: 0.4,
					Evidence: []community.Evidence{{Kind: "name", Text: "x", Weight: 0.1}},
					Ask:      []community.Ask{{What: community.AskTexts, Value: 0.5}}}
			}}
		p := newPeer(t, w, social.Options{Rules: rules})
		p.start()
		k := accountKey(t, acct)
		p.link(k)
		p.crawler.Wake(p.store.SliceOf(k), k.Site())
		time.Sleep(time.Hour)
		if judged.Load() != 2 || texts.Load() != 1 || len(p.posts(k)) != 1 {
			t.Errorf("judged %d times, of %d texts; %d posts", judged.Load(), texts.Load(), len(p.posts(k)))
		}
		asked := w.Report().Requests
		time.Sleep(20 * 24 * time.Hour)
		if judged.Load() != 2 || w.Report().Requests != asked {
			t.Errorf("nothing new is known: judged %d times, %d calls", judged.Load(), w.Report().Requests-asked)
		}
		say := func(word, want string) {
			t.Helper()
			if err := p.store.Override(0, store.Override{V: store.OverrideVersion, Key: k, Verdict: word, By: "rui"},
				time.Now(), follow.Overrule); err != nil {
				t.Fatal(err)
			}
			p.crawler.Wake(p.store.SliceOf(k), k.Site())
			r, err := p.store.Archive.Record(k)
			if err != nil || word != "" && r.VerdictWord() != word || word == "" &&
				r.VerdictWord() != community.IsUndecided {
				t.Errorf("%q: the record says %q at once, %v", word, r.VerdictWord(), err)
			}
			time.Sleep(time.Hour)
			r, err = p.store.Archive.Record(k)
			d, derr := p.store.Queue.DueOf(k)
			if err != nil || derr != nil || !strings.HasPrefix(d.Reason, want) && reasonState(d.Reason) != want ||
				(word != "") != (r.Verdict.Override != nil) {
				t.Errorf("%q: %+v, due %+v", word, r.Verdict, d)
			}
		}
		say(community.IsIn, followed)
		if _, err := w.Post(acct, "Boa noite"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(36 * time.Hour)
		if len(p.posts(k)) != 2 {
			t.Errorf("%d posts of somebody who is in by a person's word", len(p.posts(k)))
		}
		say(community.IsOut, "out: override by rui")
		say("", "undecided")
		p.end()
	})
}
