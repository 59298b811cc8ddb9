package rounds

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// Round says how the kept posts of a site are looked at again, over the Keys visited since the
// start.
type Round struct {
	Site   partition.Site
	Keys   int           // Keys with posts that are looked at again
	Posts  int           // posts of these Keys
	Period time.Duration // the time in which each post is looked at once; the longest of all Keys
	Late   int           // Keys whose round takes more than twice as long as it should
}

// maxRounds is for how many Keys the rounds are shown.
const maxRounds = 100_000

// Shown has the rounds of all Keys, in memory only. Safe for concurrent use.
type Shown struct {
	mu sync.Mutex
	by map[partition.Key]keyRound
}

// keyRound is the round of one Key.
type keyRound struct {
	Round
	late bool
}

// note stores the round of a Key. At maxRounds Keys it starts again with an empty map.
func (r *Shown) note(k partition.Key, of Round, late bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by == nil || len(r.by) >= maxRounds {
		r.by = map[partition.Key]keyRound{}
	}
	r.by[k] = keyRound{of, late}
}

// Rounds returns how kept posts are looked at again, in order of site.
func (r *Shown) Rounds() []Round {
	sites := map[partition.Site]*Round{}
	r.mu.Lock()
	for k, x := range r.by {
		at := sites[k.Site()]
		if at == nil {
			at = &Round{Site: k.Site()}
			sites[k.Site()] = at
		}
		at.Keys++
		at.Posts += x.Posts
		at.Period = max(at.Period, x.Period)
		if x.late {
			at.Late++
		}
	}
	r.mu.Unlock()
	out := make([]Round, 0, len(sites))
	for _, of := range sites {
		out = append(out, *of)
	}
	slices.SortFunc(out, func(a, b Round) int { return cmp.Compare(a.Site, b.Site) })
	return out
}
