package social_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest/mastodontest"
	"github.com/echo-node/echo-node/crawler/social"
	"github.com/echo-node/echo-node/partition/racetest"
)

// A silent account is visited in the hours in which the others of its site post least. The peer
// learns these hours and still knows them after a restart.
func TestQuietHoursAreLearned(t *testing.T) {
	racetest.Skip(t)
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := world(t, mastodontest.Options{Seed: 12, People: 6, Remote: -1, Quiet: true, Rate: -1})
		var loud []string
		silent := ""
		for _, u := range w.Users() {
			switch {
			case wishes(w.Truth().Accounts[u]):
			case silent == "":
				silent = u
			default:
				loud = append(loud, u)
			}
		}
		p := newPeer(t, w, social.Options{})
		p.start()
		p.seed(accountKeys(t, append(loud, silent))...)
		quiet := func(at time.Time) bool { return at.Hour() >= 16 && at.Hour() < 20 }
		for range 15 * 24 {
			if !quiet(time.Now().UTC()) {
				if _, err := w.Post(loud[time.Now().Hour()%len(loud)], "bom dia"); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Hour)
		}
		within := func() {
			t.Helper()
			d, err := p.store.Queue.DueOf(accountKey(t, silent))
			if err != nil || !quiet(d.At.UTC()) || d.At.After(time.Now().Add(40*time.Hour)) {
				t.Errorf("who is silent is due at %s, %v", d.At, err)
			}
		}
		within()
		p.end()
		p.start()
		time.Sleep(3 * 24 * time.Hour)
		within()
		p.end()
	})
}
