package duplicates

import (
	"cmp"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"sync"
)

// Member is one text of a group: one line of the output of echo-node focus copies.
type Member struct {
	Group          string `json:"group"` // 16 hex digits of the hash of the representative's id
	ID             string `json:"id"`
	Representative string `json:"representative"` // id of the earliest text
	// Distance is the distance to the representative, in the unit of Reason. It is 0 for exact,
	// official and the representative itself, bits for simhash, words for edit.
	Distance int    `json:"distance"`
	Reason   Reason `json:"reason"`
}

// Group is two or more texts that are copies. The first is the representative. The others follow in
// order (Ref.Before).
type Group []Member

// place is the representative of a text, and how the text matches it.
type place struct {
	rep int32
	Match
}

// join groups the texts 0..n-1, which must be in order.
func join(n int, links []link, ref func(int32) Ref) []Group {
	sortLinks(links)
	heads := unite(n, links)
	places := make([]place, n)
	for i := range places {
		places[i] = place{int32(i), Match{Reason: Representative}}
	}
	// First the sets of Same texts, by their heads. After that every link is between heads and goes
	// from the later to the earlier one.
	near := make([]link, 0, len(links))
	for _, l := range links {
		if a, b := heads.find(l.a), heads.find(l.b); a != b {
			near = append(near, link{min(a, b), max(a, b), l.Match})
		}
	}
	slices.SortFunc(near, func(k, l link) int { return cmp.Or(cmp.Compare(k.b, l.b), k.better(l)) })
	for _, l := range near {
		if places[l.b].rep == l.b && places[l.a].rep == l.a {
			places[l.b] = place{l.a, l.Match}
		}
	}
	return collect(places, heads, links, ref)
}

// better orders the links of one text by how close the earlier text is.
func (l link) better(k link) int {
	return cmp.Or(cmp.Compare(l.Reason.rank(), k.Reason.rank()), cmp.Compare(l.Distance, k.Distance),
		cmp.Compare(l.a, k.a))
}

func sortLinks(links []link) {
	slices.SortFunc(links, func(k, l link) int {
		return cmp.Or(cmp.Compare(k.a, l.a), cmp.Compare(k.b, l.b), k.better(l))
	})
}

// collect builds the groups, in the order of their representatives.
func collect(places []place, heads sets, links []link, ref func(int32) Ref) []Group {
	own := make(map[int32]Match) // how a text matches its head
	for _, l := range links {
		head := heads.find(l.b)
		if _, known := own[l.b]; l.Same && (!known || l.a == head) {
			own[l.b] = l.Match
		}
	}
	members := make(map[int32][]int32)
	for i := range places {
		head := heads.find(int32(i))
		rep := places[head].rep
		members[rep] = append(members[rep], int32(i))
	}
	var groups []Group
	for i := range places {
		if all := members[int32(i)]; len(all) > 1 {
			groups = append(groups, newGroup(int32(i), all, places, heads, own, ref))
		}
	}
	return groups
}

// newGroup builds the group of representative rep with the texts all. A text that is Same as the
// representative gets its own match, all others get the match of their head.
func newGroup(rep int32, all []int32, places []place, heads sets, own map[int32]Match, ref func(int32) Ref) Group {
	id := ref(rep).ID
	name := fmt.Sprintf("%016x", Hash(id))
	group := make(Group, 0, len(all))
	for _, i := range all {
		m := places[heads.find(i)].Match
		if heads.find(i) == rep && i != rep {
			m = own[i]
		}
		group = append(group, Member{name, ref(i).ID, id, m.Distance, m.Reason})
	}
	return group
}

// sets is a forest of texts that are the same. A root is the earliest text of its set.
type sets []int32

// unite returns the sets of Same texts.
func unite(n int, links []link) sets {
	s := make(sets, n)
	for i := range s {
		s[i] = int32(i)
	}
	for _, l := range links {
		if l.Same {
			a, b := s.find(l.a), s.find(l.b)
			s[max(a, b)] = min(a, b)
		}
	}
	return s
}

// find returns the earliest text of i's set.
func (s sets) find(i int32) int32 {
	for s[i] != i {
		s[i] = s[s[i]]
		i = s[i]
	}
	return i
}

// Grouper collects texts and groups them. It keeps a Fingerprint of each, about 200 bytes for a tweet,
// and not the texts. It is not safe for concurrent use.
type Grouper struct {
	opts         Options
	printer      printer
	fingerprints []Fingerprint
}

// NewGrouper returns an empty Grouper.
func NewGrouper(opts Options) *Grouper { return &Grouper{opts: opts.withDefaults()} }

// Add adds a text.
func (g *Grouper) Add(t Text) { g.fingerprints = append(g.fingerprints, g.printer.print(t)) }

// Groups returns the groups of all texts added so far, in the order of their representatives. It
// does not depend on the order in which they were added.
func (g *Grouper) Groups() []Group {
	links := g.opts.links(g.fingerprints, nil)
	return join(len(g.fingerprints), links, func(i int32) Ref { return g.fingerprints[i].Ref() })
}

// batch is the number of texts that a worker of GroupAll handles at a time.
const batch = 1024

// GroupAll groups texts on all processors.
func GroupAll(texts iter.Seq[Text], opts Options) []Group {
	g := NewGrouper(opts)
	work := make(chan []Text)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			var p printer
			for some := range work {
				fingerprints := make([]Fingerprint, 0, len(some))
				for _, t := range some {
					fingerprints = append(fingerprints, p.print(t))
				}
				mu.Lock()
				g.fingerprints = append(g.fingerprints, fingerprints...)
				mu.Unlock()
			}
		})
	}
	some := make([]Text, 0, batch)
	for t := range texts {
		if some = append(some, t); len(some) == batch {
			work <- some
			some = make([]Text, 0, batch)
		}
	}
	work <- some
	close(work)
	wg.Wait()
	return g.Groups()
}
