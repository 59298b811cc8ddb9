package node

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/echo-node/echo-node/dht"
	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/node/call"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store/index"
)

// Query answers for the whole swarm (I8): every slice is assigned to its owner;
// the owners' term statistics are gathered first, then their best hits under
// the merged statistics, so that a score does not depend on who holds what. A
// slice that nobody answered for is named with its peer and the reason.
func (n *Node) Query(ctx context.Context, q api.Query) (api.Answer, error) {
	start := time.Now()
	if q.Limit == 0 {
		q.Limit = 10
	}
	at, err := parseCursor(q.Cursor, cursorOf(q))
	if err != nil {
		return api.Answer{}, fmt.Errorf("%w: %w", api.ErrInvalid, err)
	}
	if q.Limit < 0 || q.Limit > MaxQueryHits {
		return api.Answer{}, fmt.Errorf("%w: limit %d: an answer has at most %d hits; its cursor leads to the next",
			api.ErrInvalid, q.Limit, MaxQueryHits)
	}
	q.Limit = min(q.Limit, MaxQueryHits-at.Offset) // the page before the cap may be shorter
	// A query that is over a cap is the asker's mistake, found here, not every
	// peer's failure.
	if err := n.index.Check(q.Q); errors.Is(err, index.ErrQuery) {
		return api.Answer{}, fmt.Errorf("%w: %w", api.ErrInvalid, err)
	}
	facets, err := n.facets(q.Facets)
	if err != nil {
		return api.Answer{}, err
	}
	// A peer that says nothing may cost the statistics half of the time, not the
	// others' hits all of it.
	look := at.Offset + q.Limit
	if !q.Unfold {
		look = min(look+foldAhead(q.Limit), MaxQueryHits)
	}
	wq := wireQuery(q, facets, look)
	if a := at.After; a != nil {
		wq.After = &wire.Place{Score: a.Score, Key: string(a.Key), Post: a.Post}
	}
	sc := n.newScatter(wq)
	wait := cmp.Or(q.Timeout, n.o.QueryTimeout)
	sc.zones = n.splitUntil(ctx, sc.assign, start.Add(wait/4))
	sc.round(ctx, true, start.Add(wait/2))
	sc.round(ctx, false, start.Add(wait))

	all := mergeHits(sc.hits, 0, look)
	hits, next := all[min(at.Offset, len(all)):], min(at.Offset+q.Limit, len(all))
	if q.Unfold {
		hits = hits[:min(q.Limit, len(hits))]
	} else {
		hits, next = fold(all, at.Offset, q.Limit)
	}
	ans := api.Answer{Hits: hits, Total: sc.total, Coverage: sc.coverage(), Notes: index.Notes(q.Q)}
	if more := next < len(all) || len(all) == look; more && len(ans.Hits) > 0 {
		ans.Cursor = at.then(all, next).String()
	}
	ans.TookMS = float64(time.Since(start).Microseconds()) / 1000
	return ans, nil
}

func wireQuery(q api.Query, facets *wire.Facets, limit int) *wire.Query {
	w := &wire.Query{Q: q.Q, Kind: q.Kind, Lang: q.Lang, Site: siteText(q.Site), Limit: uint32(limit), Facets: facets,
		Prints: !q.Unfold}
	if !q.Since.IsZero() {
		w.SinceMs = q.Since.UnixMilli()
	}
	if !q.Until.IsZero() {
		w.UntilMs = q.Until.UnixMilli()
	}
	return w
}

// siteText takes a site as people write it, a host, a host and port, or a URL, to a Site.
func siteText(s string) string {
	for _, service := range []string{"mastodon:", "bluesky:", "twitter:", "ip:"} {
		if strings.HasPrefix(s, service) {
			return s
		}
	}
	at := strings.TrimPrefix(s, "web:")
	if at == "" {
		return s
	}
	if !strings.Contains(at, "://") {
		scheme := "https://"
		if strings.HasSuffix(at, ":80") { // no part of a Site, as it is what http means
			scheme = "http://"
		}
		at = scheme + at
	}
	if k, err := partition.ParseKey(at); err == nil {
		return string(k.Site())
	}
	return "web:" + strings.ToLower(strings.TrimPrefix(s, "web:"))
}

// scatter is one query on its way over the swarm.
type scatter struct {
	n      *Node
	q      *wire.Query
	assign map[string][]partition.Slice

	mu       sync.Mutex
	stats    index.Stats
	hits     [][]api.Hit
	total    uint64
	answered int
	stale    bool                     // somebody's index is behind its store
	failed   map[string]api.Missing   // by peer: out of the query from then on
	partial  []api.Missing            // answered, but not for these slices
	lost     []partition.Slice        // the slices of partial
	unscored map[partition.Slice]bool // whose statistics nobody gave: their hits are not asked for

	zones map[string]partition.Zone // the members that are asked for their whole zone
	given *wire.TermStats           // to score with; nil = those of the first round
}

func (n *Node) newScatter(q *wire.Query) *scatter {
	return &scatter{n: n, q: q, assign: n.assignment(), failed: map[string]api.Missing{},
		unscored: map[partition.Slice]bool{}}
}

// answerGrace is how long after its deadline a round goes on for those who just make
// it. Who does not is named as missing, whatever holds it up: this peer itself, too, may
// stand before a lock that knows of no deadline.
const answerGrace = 100 * time.Millisecond

// round asks every peer that is still in, for statistics or for hits.
func (s *scatter) round(ctx context.Context, statsOnly bool, until time.Time) {
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	var merged *wire.TermStats
	if s.given != nil {
		merged = s.given
	} else if !statsOnly {
		b, err := json.Marshal(s.stats)
		if err == nil {
			merged = &wire.TermStats{Docs: s.stats.Docs, Opaque: b}
		}
	}
	var wg sync.WaitGroup
	waiting := map[string]int{} // slices of those that have not answered; nil = over. Under s.mu
	for peer, slices := range s.assign {
		s.mu.Lock()
		_, out := s.failed[peer]
		s.mu.Unlock()
		_, isZone := s.zones[peer]
		if !isZone && !statsOnly {
			slices = s.scored(slices)
		}
		if out || len(slices) == 0 {
			continue
		}
		q := &wire.Query{Q: s.q.Q, Kind: s.q.Kind, Lang: s.q.Lang, Site: s.q.Site, SinceMs: s.q.SinceMs,
			UntilMs: s.q.UntilMs,
			Facets:  s.q.Facets, Prints: s.q.Prints, Limit: s.q.Limit, After: s.q.After, StatsOnly: statsOnly,
			Stats: merged, Slices: make([]uint64, len(slices))}
		for i, sl := range slices {
			q.Slices[i] = uint64(sl)
		}
		if zone, ok := s.zones[peer]; ok {
			q.Zone, q.Slices = uint64(zone), nil
		}
		s.mu.Lock()
		waiting[peer] = len(slices)
		s.mu.Unlock()
		wg.Go(func() {
			a, err := s.ask(ctx, peer, q)
			s.mu.Lock()
			defer s.mu.Unlock()
			if waiting == nil {
				return
			}
			delete(waiting, peer)
			if err == nil {
				err = s.take(peer, a, slices, statsOnly)
			}
			if err != nil {
				s.failed[peer] = api.Missing{Peer: peer, Reason: s.n.reason(ctx, peer, err), Slices: len(slices)}
			}
		})
	}
	await(ctx, &wg)
	s.mu.Lock()
	defer s.mu.Unlock()
	for peer, slices := range waiting {
		s.failed[peer] = api.Missing{Peer: peer, Reason: s.n.reason(ctx, peer, ctx.Err()), Slices: slices}
	}
	waiting = nil
}

// await waits for wg, but not for longer than answerGrace after ctx has ended.
func await(ctx context.Context, wg *sync.WaitGroup) {
	all := make(chan struct{})
	go func() {
		wg.Wait()
		close(all)
	}()
	select {
	case <-all:
		return
	case <-ctx.Done():
	}
	select {
	case <-all:
	case <-time.After(answerGrace):
	}
}

// scored are those of slices that the first round was answered for: hits are
// weighed by the statistics of all that are asked (I8).
func (s *scatter) scored(slices []partition.Slice) []partition.Slice {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.unscored) == 0 {
		return slices
	}
	var out []partition.Slice
	for _, sl := range slices {
		if !s.unscored[sl] {
			out = append(out, sl)
		}
	}
	return out
}

func (s *scatter) ask(ctx context.Context, peer string, q *wire.Query) (*wire.QueryAnswer, error) {
	if peer == s.n.id {
		return s.n.serveQuery(ctx, q)
	}
	resp, err := s.n.call(ctx, peer, &wire.Request{Body: &wire.Request_Query{Query: q}})
	switch {
	case err == nil:
	case call.IsRefusal(err), errors.Is(err, call.ErrVanished), errors.Is(err, dht.ErrNoPeer):
		return nil, err
	default:
		return nil, fmt.Errorf("%w: %w", errBroken, err)
	}
	if a := resp.GetQuery(); a != nil {
		return a, nil
	}
	return nil, call.ErrForeign
}

// take merges one peer's answer, which may speak of nothing but the slices it
// was asked for (I8). s.mu is held.
func (s *scatter) take(peer string, a *wire.QueryAnswer, slices []partition.Slice, statsOnly bool) error {
	asked := make(map[partition.Slice]bool, len(slices))
	for _, sl := range slices {
		asked[sl] = true
	}
	missing := make(map[partition.Slice]bool, len(a.GetMissing()))
	for _, m := range a.GetMissing() {
		if !asked[partition.Slice(m)] {
			return errors.New("it says it misses what it was not asked for")
		}
		missing[partition.Slice(m)] = true
	}
	if statsOnly {
		return s.takeStats(peer, a, missing)
	}
	if s.q.Facets != nil && !a.GetFaceted() && len(missing) < len(slices) {
		return errors.New("its version knows no place, scope or verdict to choose by")
	}
	hits := make([]api.Hit, 0, len(a.GetHits()))
	for _, h := range a.GetHits() {
		x, err := hitOf(h)
		if err != nil {
			return err
		}
		sl, err := s.n.sliceFrom(h.Slice, x.Key)
		if err != nil {
			return err
		}
		if !asked[sl] || missing[sl] {
			return errors.New("its hit is of a slice that it does not answer for")
		}
		if a := s.q.After; a != nil && !(afterward{a.Score, partition.Key(a.Key), a.Post}).before(x) {
			return fmt.Errorf("its version knows no page beyond the first %d hits", MaxQueryHits)
		}
		hits = append(hits, x)
	}
	s.hits = append(s.hits, hits)
	s.stale = s.stale || a.GetStale()
	s.total += min(a.GetTotal(), math.MaxUint64-s.total)
	s.answered += len(slices) - len(missing)
	s.lack(peer, missing)
	return nil
}

// takeStats merges what one peer answered in the first round. s.mu is held.
func (s *scatter) takeStats(peer string, a *wire.QueryAnswer, missing map[partition.Slice]bool) error {
	if a.GetStats() != nil {
		var st index.Stats
		if err := json.Unmarshal(a.Stats.Opaque, &st); err != nil {
			return fmt.Errorf("its statistics: %w", err)
		}
		s.stats = s.stats.Merge(st)
	}
	if _, isZone := s.zones[peer]; isZone {
		return nil // it is asked for its zone as a whole again
	}
	for m := range missing {
		s.unscored[m] = true
	}
	s.lack(peer, missing)
	return nil
}

// lack notes slices that peer does not answer for. s.mu is held.
func (s *scatter) lack(peer string, missing map[partition.Slice]bool) {
	for m := range missing {
		s.lost = append(s.lost, m)
	}
	s.partial = append(s.partial, s.n.whyMissing(peer, slices.Collect(maps.Keys(missing)))...)
}

func (s *scatter) coverage() api.Coverage {
	c := api.Coverage{SlicesAnswered: s.answered, Stale: s.stale, Missing: s.partial}
	for _, slices := range s.assign {
		c.SlicesTotal += len(slices)
	}
	for _, m := range s.failed {
		c.Missing = append(c.Missing, m)
	}
	if c.Missing == nil {
		c.Missing = []api.Missing{}
	}
	return c
}

// whyMissing says in words why a peer that answered has no answer for some of the
// slices it was asked for, a line for each reason.
func (n *Node) whyMissing(peer string, missing []partition.Slice) []api.Missing {
	count := map[string]int{}
	for _, sl := range missing {
		c, gone := n.quorum.ReplicaSet(sl), 0
		for _, k := range c.Replicas {
			if k != n.id && !n.placement.Alive(k) {
				gone++
			}
		}
		switch {
		case peer == n.id && n.quorum.Has(sl): // whoever else is gone
			count["being read into its index"]++
		case gone == 0:
			count["still being copied to it, or read into its index"]++
		case len(c.Replicas)-gone < c.Quorum():
			why := fmt.Sprintf("%d of the %d peers that keep these slices are gone; they are waited for (--orphan-after %s)",
				gone, len(c.Replicas), n.o.OrphanAfter)
			count[why]++
		default:
			count[fmt.Sprintf("%d of the %d peers that keep these slices are gone; another is taking over", gone,
				len(c.Replicas))]++
		}
	}
	out := make([]api.Missing, 0, len(count))
	for _, reason := range slices.Sorted(maps.Keys(count)) {
		out = append(out, api.Missing{Peer: peer, Reason: reason, Slices: count[reason]})
	}
	return out
}

// reason says in words why a peer is missing from an answer.
func (n *Node) reason(ctx context.Context, peer string, err error) string {
	if peer == "" {
		return "no member was found that owns these slices"
	}
	for _, g := range n.placement.Absent() {
		if g.Member.ID == peer {
			return fmt.Sprintf("vanished %s ago; its slices are kept for it for %s",
				time.Since(g.Since).Round(time.Second), n.o.OrphanAfter)
		}
	}
	// Of a time before this peer's start. Who is alive in other zones is not known here.
	if !n.placement.Alive(peer) && n.dht.Zone().HasPeer(peer) && slices.Contains(n.quorum.Replicas(), peer) {
		return fmt.Sprintf("is not here; it is waited for (--orphan-after %s), then others take its slices",
			n.o.OrphanAfter)
	}
	switch {
	case ctx.Err() != nil:
		return "did not answer in time"
	case errors.Is(err, dht.ErrNoPeer):
		return "cannot be reached; it is not known yet whether it is gone"
	case errors.Is(err, errBroken):
		return "gave no answer, its connection broke; it is not known yet whether it is gone"
	}
	return err.Error()
}

// errBroken is wrapped when a call ended without an answer although its time was not up.
var errBroken = errors.New("no answer")

// hitOf checks what another peer calls a hit: the Key is a Key.
func hitOf(h *wire.Hit) (api.Hit, error) {
	k, err := partition.KeyFromWire(h.GetKey())
	if err != nil {
		return api.Hit{}, fmt.Errorf("its hit: %w", err)
	}
	x := api.Hit{Key: k, Post: h.Post, Kind: h.Kind, Title: h.Title, Snippet: h.Snippet, Score: h.Score, Place: h.Place,
		Lang: h.Lang, Peer: h.Peer,
		FetchedAt: time.UnixMilli(h.FetchedMs).UTC(), Period: h.Period, Verdict: h.Verdict, Print: h.Print}
	if h.TimeMs != 0 {
		t := time.UnixMilli(h.TimeMs).UTC()
		x.Time = &t
	}
	return x, nil
}

// serveQuery answers for the asked slices that are held here, and names the
// others.
func (n *Node) serveQuery(ctx context.Context, q *wire.Query) (*wire.QueryAnswer, error) {
	if q.Zone != 0 {
		return n.serveZoneQuery(ctx, q)
	}
	a := &wire.QueryAnswer{}
	iq := index.Query{Text: q.Q, Kind: q.Kind, Lang: q.Lang, Site: q.Site, Limit: min(int(q.Limit), MaxQueryHits)}
	if q.SinceMs != 0 {
		iq.Since = time.UnixMilli(q.SinceMs)
	}
	if q.UntilMs != 0 {
		iq.Until = time.UnixMilli(q.UntilMs)
	}
	if a := q.After; a != nil {
		iq.After = &index.Place{Score: a.Score, Key: partition.Key(a.Key), Post: a.Post}
	}
	var err error
	if iq.Facets, err = facetsFrom(q.Facets); err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	a.Faceted = q.Facets != nil
	for _, s := range q.Slices {
		if sl := partition.Slice(s); n.quorum.Has(sl) {
			iq.Slices = append(iq.Slices, sl)
		} else {
			a.Missing = append(a.Missing, s)
		}
	}
	if len(iq.Slices) == 0 {
		return a, nil
	}
	if q.StatsOnly {
		st, err := n.statistics(ctx, iq)
		if err != nil {
			return nil, fmt.Errorf("query: %w", err)
		}
		a.Missing = appendSlices(a.Missing, st.Missing)
		b, err := json.Marshal(st)
		a.Stats = &wire.TermStats{Docs: st.Docs, Opaque: b}
		return a, err
	}
	var st *index.Stats
	if q.Stats != nil {
		st = new(index.Stats)
		if err := json.Unmarshal(q.Stats.Opaque, st); err != nil {
			return nil, fmt.Errorf("query: statistics: %w", err)
		}
	}
	if q.Prints {
		iq.Beside = n.fingerprints.of
	}
	res, err := n.index.Search(ctx, iq, st)
	if err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	a.Missing = appendSlices(a.Missing, res.Missing)
	// A replica that does not act may lack what its owner wrote last.
	a.Total, a.Stale = res.Total, n.indexLag() > 0 ||
		slices.ContainsFunc(iq.Slices, func(s partition.Slice) bool { return !n.agreement.Acts(s) })
	for _, h := range res.Hits {
		w := &wire.Hit{
			Key: string(h.Key), Post: h.Post, Slice: sliceOn(h.Slice), Score: h.Score, Kind: h.Kind, Lang: h.Lang,
			Title: h.Title, Snippet: h.Snippet, Period: periodText(h.Period), Verdict: h.Verdict,
			Peer: h.Peer, FetchedMs: h.FetchedAt.UnixMilli(), Print: h.Beside,
		}
		if h.Place != nil {
			w.Place = h.Place.Name
		}
		if !h.Time.IsZero() {
			w.TimeMs = h.Time.UnixMilli()
		}
		a.Hits = append(a.Hits, w)
	}
	return a, nil
}

// statistics are the index's, which may have to read slices first: only an
// owner has them there all the time.
func (n *Node) statistics(ctx context.Context, q index.Query) (index.Stats, error) {
	wait, cancel := context.WithTimeout(ctx, n.indexWait())
	defer cancel()
	if err := n.index.Await(wait, q.Slices); err != nil && wait.Err() == nil {
		return index.Stats{}, err
	}
	return n.index.Statistics(ctx, q)
}

func appendSlices(to []uint64, sls []partition.Slice) []uint64 {
	for _, sl := range sls {
		to = append(to, uint64(sl))
	}
	return to
}
