package social_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest/twittertest"
	"github.com/echo-node/echo-node/crawler/social"
)

// An X that accepts only the newer spelling of its parameters, and not all fields, is followed
// whole within an hour. No seed waits for a day. Few calls are refused, also for a peer that
// forgets everything each day.
func TestXOfAnotherSpelling(t *testing.T) {
	for name, l := range map[string]twittertest.Lies{
		"posts only": {OnlyPosts: true, Posts: true},
		"and fewer still": {OnlyPosts: true, Posts: true, Refuses: []string{"withheld", "most_recent_post_id",
			"media.fields", "geo", "possibly_sensitive", "alt_text", "verified", "pinned_post_id", "url", "location"}},
		"without a word": {OnlyPosts: true, Posts: true, Refusal: "Bad request"},
	} {
		synctest.Test(t, func(t *testing.T) {
			w, p := birds(t, twittertest.Options{Seed: 5, People: 20, Quiet: true, Limits: twittertest.XLimits(),
				Lies: l}, social.Options{Lists: true}, 40)
			p.start()
			for _, id := range w.IDs() {
				p.seed(xKey(id))
			}
			time.Sleep(time.Hour)
			if posts, _ := p.sameAsX(w.Truth(), time.Now().Add(-2*time.Hour)); posts < 50 {
				t.Errorf("%s: %d posts", name, posts)
			}
			starts := 3
			for range starts {
				p.crash()
				time.Sleep(26 * time.Hour)
			}
			p.sameAsX(w.Truth(), time.Now().Add(-27*time.Hour))
			p.withinMoney(w, 40)
			r := w.Report()
			if most := (starts + 1) * 5 * (2 + len(l.Refuses)); r.Invalid > most || r.Invalid < starts ||
				r.Refused > 0 {
				t.Errorf("%s: %d calls were invalid, want at most %d; %+v", name, r.Invalid, most, r)
			}
			t.Logf("%s: %d requests, %d of them invalid", name, r.Requests, r.Invalid)
			p.end()
		})
	}
}
