package social_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest/mastodontest"
	"github.com/echo-node/echo-node/crawler/social"
	"github.com/echo-node/echo-node/crawler/social/follow"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/racetest"
)

// country knows the places that the people of a world name.
func country(text string) string {
	switch text {
	case "Braga", "Évora", "Coimbra", "Aveiro", "Faro", "Setúbal":
		return "PT"
	case "Cádiz", "Zamora", "Jaén", "León", "Soria", "Gijón":
		return "ES"
	}
	return ""
}

// From one person a community is found through mentions, boosts and lists. An account that says it
// lives elsewhere is left out, with the reason. An undecided account waits. If only seeds are
// followed, no account is found.
func TestACommunityGrowsFromASeed(t *testing.T) {
	for _, scope := range []follow.Scope{follow.Seeds, follow.Community} {
		synctest.Test(t, func(t *testing.T) {
			w := world(t, mastodontest.Options{Seed: 21, People: racetest.Fewer(t, 60), Remote: -1, Quiet: true,
				Rate: 1})
			p := newPeer(t, w, social.Options{Lists: true, Rules: follow.Rules{Follow: scope, Countries: []string{"PT"},
				Country: country}})
			p.start()
			truth := w.Truth()
			var seed string
			for _, u := range w.Users() {
				if a := truth.Accounts[u]; !wishes(a) && len(a.Following) > 2 && len(a.Followers) > 2 {
					seed = u
					break
				}
			}
			p.seed(accountKey(t, seed))
			time.Sleep(2 * 24 * time.Hour)
			in, out, open, missed := 0, 0, 0, 0
			for _, u := range w.Users() {
				d, err := p.store.Queue.DueOf(accountKey(t, u))
				home := country(truth.Accounts[u].Fields[0][1])
				switch {
				case u == seed || wishes(truth.Accounts[u]):
				case err != nil:
					missed++
				case strings.HasPrefix(d.Reason, "out: "):
					if out++; home != "ES" {
						t.Errorf("%s of %q is out: %s", u, home, d.Reason)
					}
				case strings.HasPrefix(d.Reason, "undecided"):
					if open++; home != "" {
						t.Errorf("%s of %q is undecided: %s", u, home, d.Reason)
					}
				default:
					if in++; home != "PT" {
						t.Errorf("%s of %q is followed", u, home)
					}
				}
			}
			if scope == follow.Seeds && in+out+open > 0 || scope == follow.Community && !racetest.Small(t) &&
				(in < 5 || out < 5 || open < 5) {
				t.Errorf("%s: %d in, %d out, %d undecided, %d not found", scope, in, out, open, missed)
			}
			t.Logf("%s: %d in, %d out, %d undecided, %d not found; %d requests", scope, in, out, open, missed,
				w.Report().Requests)
			p.end()
		})
	}
}

// followed is the state word of an account whose posts are read.
const followed = "followed"

// reasonState returns the first word of a due row's reason, or followed if the reason says when
// posts are read next.
func reasonState(reason string) string {
	word, _, _ := strings.Cut(reason, ":")
	if strings.HasPrefix(word, "posted every ") || strings.HasPrefix(word, "no post for a month") {
		return followed
	}
	return word
}

// The include and exclude lists take precedence over evidence. An account with unclear evidence
// stays undecided.
func TestTheVerdictSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := world(t, mastodontest.Options{Seed: 21, People: 30, Remote: -1, Quiet: true, Rate: -1})
		var accts []string
		for _, u := range w.Users() {
			if !wishes(w.Truth().Accounts[u]) {
				accts = append(accts, u)
			}
		}
		banned, kept := accountKey(t, accts[0]), accountKey(t, accts[1])
		rules := follow.Rules{Follow: follow.Community, Countries: []string{"PT"},
			Exclude: map[partition.Key]bool{banned: true}, Include: map[partition.Key]bool{kept: true},
			Country: country}
		p := newPeer(t, w, social.Options{Rules: rules})
		p.start()
		p.seed(banned)
		p.stop()
		var found []partition.Key
		for _, a := range accts[1:] {
			found = append(found, accountKey(t, a))
		}
		p.link(found...)
		if err := p.store.Close(); err != nil {
			t.Fatal(err)
		}
		p.start()
		time.Sleep(time.Hour)
		seen := map[string]int{}
		for _, k := range append(found, banned) {
			d, err := p.store.Queue.DueOf(k)
			if err != nil {
				t.Fatal(err)
			}
			word := reasonState(d.Reason)
			seen[word]++
			if k == banned && !strings.Contains(d.Reason, "exclude list") || k == kept && word != followed {
				t.Errorf("%s: %q", k, d.Reason)
			}
		}
		if seen[followed] == 0 || seen["out"] == 0 || seen["undecided"] == 0 {
			t.Errorf("%v", seen)
		}
		p.end()
	})
}
