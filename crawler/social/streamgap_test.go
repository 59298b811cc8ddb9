package social_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest/blueskytest"
	"github.com/echo-node/echo-node/crawler/social"
)

// unheard counts the accounts whose ledger says that events of a stream were lost.
func (p *peer) unheard(w *blueskytest.World) (n int) {
	for _, k := range everybody(w) {
		for _, g := range p.gaps(k) {
			if strings.Contains(g.Reason, "a stream") {
				n++
				break
			}
		}
	}
	return n
}

// A peer that is away for longer than a stream keeps events gets those that the stream still has.
// For every account that it then gets events of, its ledger says that something may be missing.
func TestAStreamForgetsWhatIsOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p, end := listening(t, blueskytest.Options{Seed: 8, People: 8, Rate: 4},
			social.Options{Least: 20 * 24 * time.Hour, Most: 20 * 24 * time.Hour})
		p.start()
		p.seed(everybody(w)...)
		time.Sleep(3 * time.Hour)
		if n := p.unheard(w); n > 0 {
			t.Fatalf("%d accounts have gaps at first", n)
		}
		p.end()
		away := time.Now()
		time.Sleep(60 * time.Hour)
		back := time.Now()
		p.start()
		time.Sleep(5 * time.Minute)
		had, lost, heard, truth := 0, 0, 0, w.Truth()
		for _, k := range everybody(w) {
			news, written := 0, p.written(k)
			for uri, r := range written {
				if made := truth.Posts[uri].Created; made.After(away) && r.FetchedAt.After(away) {
					news++
				}
			}
			if had += news; news > 0 {
				heard++
			}
			for _, uri := range truth.Accounts[strings.TrimPrefix(string(k), "bluesky:")].Records {
				made, r := truth.Posts[uri].Created, written[uri]
				switch recent := made.After(back.Add(-35 * time.Hour)); {
				case !made.After(away) || !made.Before(back):
				case recent && r.Post == "":
					t.Errorf("%s of %s is not had", uri, made)
				case r.Post == "":
					lost++
				}
			}
		}
		n := p.unheard(w)
		if t.Logf("%d posts of %d accounts had, %d that it told no more; %d accounts with gaps", had, heard, lost,
			n); had == 0 || lost == 0 || n < heard || heard < 3 {
			t.Errorf("%d posts of %d accounts, %d lost, %d accounts with gaps", had, heard, lost, n)
		}
		p.end()
		end()
	})
}

// Events of an account that could not be visited for ten minutes are counted and dropped. The next
// visit, which reads the posts, adds a gap to the ledger.
func TestWordsThatNobodyTook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p, end := listening(t, blueskytest.Options{Seed: 8, People: 8, Rate: 4},
			social.Options{Least: 12 * time.Hour, Most: 12 * time.Hour})
		p.idle = true
		p.start()
		p.seed(everybody(w)...)
		time.Sleep(10 * time.Hour)
		at := p.src.Streams()[0]
		if at.Lost == 0 || at.Lost > at.Events {
			t.Errorf("%+v", at)
		}
		time.Sleep(26 * time.Hour) // two readings
		posts, _ := p.sameAsSkies(w.Truth(), time.Now().Add(-13*time.Hour))
		n := p.unheard(w)
		if t.Logf("%d posts, %d accounts with gaps, %+v", posts, n, p.src.Streams()[0]); posts < 20 || n < 3 {
			t.Errorf("%d posts, %d accounts with gaps", posts, n)
		}
		p.end()
		end()
	})
}
