package nodetest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Seed gives the test web's seeds to the first living peer.
func (s *Sim) Seed() {
	s.t.Helper()
	seed(s.t, s.alive()[0].Node(), s.World)
}

func (s *Sim) alive() []*SimPeer {
	var up []*SimPeer
	for _, p := range s.Peers {
		if p.alive() {
			up = append(up, p)
		}
	}
	if len(up) == 0 {
		s.t.Fatal("no peer is up")
	}
	return up
}

// Settle waits until every living peer sees all of them and awaits no slice.
func (s *Sim) Settle(limit time.Duration) {
	s.t.Helper()
	s.Until("the swarm settles", limit, func() string {
		up := s.alive()
		for _, p := range up {
			if st := p.Node().Status(); st.Peers != len(up) || st.SlicesAwaited > 0 || st.Slices == 0 {
				return fmt.Sprintf("%s sees %d peers of %d, acts in %d slices, awaits %d", p.Name, st.Peers, len(up),
					st.Slices, st.SlicesAwaited)
			}
		}
		return ""
	})
}

// Until waits until pending returns "", at most limit of fake time.
func (s *Sim) Until(what string, limit time.Duration, pending func() string) {
	s.t.Helper()
	for deadline := time.Now().Add(limit); ; time.Sleep(100 * time.Millisecond) {
		why := pending()
		if why == "" {
			return
		}
		if time.Now().After(deadline) {
			s.report()
			s.t.Fatalf("%s: not within %s: %s", what, limit, why)
		}
	}
}

// report logs the status of every peer.
func (s *Sim) report() {
	for _, p := range s.Peers {
		if n := p.Node(); n != nil {
			s.t.Logf("%s: %+v", p.Name, n.Status())
		} else {
			s.t.Logf("%s is down", p.Name)
		}
	}
}

// WaitIdle waits, at p, until the swarm is idle, like --until-idle.
func (s *Sim) WaitIdle(p *SimPeer, limit time.Duration) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := p.Node().WaitIdle(ctx, 2*time.Second); err != nil {
		s.report()
		s.t.Fatalf("the swarm does not become idle within %s: %v", limit, err)
	}
}

// Release makes the swarm look again at all Keys in quarantine, like a person who knows that
// the processes died for another reason. It returns the number of Keys.
func (s *Sim) Release() int {
	s.t.Helper()
	released := map[partition.Key]bool{} // a replica may not know yet
	for _, p := range s.alive() {
		q, err := p.Node().API().Quarantine(context.Background())
		if err != nil {
			s.t.Fatalf("%s: quarantine: %v", p.Name, err)
		}
		for _, x := range q.Keys {
			if !released[x.Key] {
				released[x.Key] = true
				s.ReleaseKey(x.Key)
			}
		}
	}
	return len(released)
}

// ReleaseKey makes the swarm look again at k. In an open swarm the founder may do this for all
// slices, and every peer for the slices that it owns. An owner may be unable to answer for a moment,
// so the person asks again for a minute.
func (s *Sim) ReleaseKey(k partition.Key) {
	s.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Second) {
		var all []error
		for _, p := range s.alive() {
			err := p.Node().API().Release(context.Background(), k, "a person")
			if err == nil {
				return
			}
			all = append(all, fmt.Errorf("%s: %w", p.Name, err))
		}
		if time.Now().After(end) {
			s.t.Fatalf("release %s: %v", k, errors.Join(all...))
		}
	}
}

// Crawl is the result of a crawl. For each Key it has the part of the record that does not
// depend on time and fetching peer. For each query it has the Keys in order.
type Crawl struct {
	Records map[partition.Key]string
	Answers map[string][]partition.Key
}

// Queries returns the queries for every crawl: single words, several words, facets.
func (s *Sim) Queries() []api.Query {
	var all []api.Query
	for _, w := range s.World.Words() {
		all = append(all, api.Query{Q: w})
	}
	all = append(all, api.Query{Q: "farol Braga"}, api.Query{Q: "the lighthouse in Whitby"},
		api.Query{Q: "molino vecinos barrio", Lang: "es"},
		api.Query{Q: "library neighbours signatures", Kind: "page", Lang: "en"},
		api.Query{Q: "fotografias", Site: s.World.Host(0)},
		api.Query{Q: "nowhere-to-be-found"})
	return all
}

// Outcome returns the swarm's result: the records as one peer exports them, and the answers of
// every living peer, which must be the same.
func (s *Sim) Outcome() Crawl {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	up := s.alive()
	c := Crawl{Records: map[partition.Key]string{}, Answers: map[string][]partition.Key{}}
	bodies := 0
	missing, err := up[s.Rand.IntN(len(up))].Node().Search().Export(ctx, api.Export{Captures: true},
		func(rec store.Record, _ string) error {
			if _, twice := c.Records[rec.Key]; twice {
				s.t.Errorf("%s is exported twice", rec.Key)
			}
			c.Records[rec.Key] = essence(rec)
			if kept(rec) {
				bodies++
			}
			return nil
		})
	if s.o.Node.KeepBodies && bodies < len(c.Records)/2 { // few pages say noindex
		s.t.Errorf("%d of %d records have their body", bodies, len(c.Records))
	}
	if err != nil || len(missing) > 0 {
		s.t.Errorf("export: %v, missing %+v", err, missing)
	}
	s.Until("the indexes follow", time.Minute, func() string {
		for _, p := range up {
			if lag := p.Node().Status().IndexLag; lag > 0 {
				return fmt.Sprintf("%s lags by %d", p.Name, lag)
			}
		}
		return ""
	})
	for _, q := range s.Queries() {
		q.Limit = 200
		name := fmt.Sprintf("%s kind=%s lang=%s site=%s", q.Q, q.Kind, q.Lang, q.Site)
		for i, p := range up {
			a := s.ask(ctx, p, q)
			keys := []partition.Key{}
			for _, h := range a.Hits {
				keys = append(keys, h.Key)
			}
			if i == 0 {
				c.Answers[name] = keys
			} else if !slices.Equal(keys, c.Answers[name]) {
				s.t.Errorf("%q: %s answers %d Keys, %s %d: %s", name, p.Name, len(keys), up[0].Name,
					len(c.Answers[name]), firstDifference(keys, c.Answers[name]))
			}
		}
	}
	return c
}

// ask returns p's answer to q. While slices change hands or are repaired, an answer may say
// that it is stale, or what is missing. That continues after the crawl ends. A caller that
// needs a complete answer asks again, as here; a minute is enough.
func (s *Sim) ask(ctx context.Context, p *SimPeer, q api.Query) (a api.Answer) {
	s.t.Helper()
	s.Until(fmt.Sprintf("%s answers %q whole", p.Name, q.Q), time.Minute, func() string {
		var err error
		if a, err = p.Node().Search().Query(ctx, q); err != nil ||
			a.Coverage.SlicesAnswered != a.Coverage.SlicesTotal ||
			a.Coverage.Stale {
			return fmt.Sprintf("%v, coverage %+v", err, a.Coverage)
		}
		return ""
	})
	return a
}

// essence returns the part of a record that must not depend on the fetching peer or the time.
func essence(r store.Record) string {
	var links strings.Builder
	for _, l := range r.Links {
		fmt.Fprintf(&links, " %s|%s|%s|%t", l.Key, l.Anchor, l.Rel, l.NoFollow)
	}
	return fmt.Sprintf("%d %s redirect=%s noindex=%t kept=%t lang=%s title=%q text=%q links:%s", r.Status, r.Digest,
		r.Redirect, r.NoIndex, kept(r), r.Lang, r.Title, r.Text, links.String())
}

// kept reports whether r comes with a version that has the same content, and with its complete
// body.
func kept(r store.Record) bool {
	for _, c := range r.Captures {
		if c.Revisit != "" || c.Status != r.Status || c.Digest != r.Digest || c.Redirect != r.Redirect ||
			len(c.Response) == 0 {
			continue
		}
		if sum := sha256.Sum256(c.Body); r.Digest == "" || r.Digest == "sha256:"+hex.EncodeToString(sum[:]) {
			return true
		}
	}
	return false
}

// Differences describes how b differs from a, with a few entries of each kind at most.
func (a Crawl) Differences(b Crawl) []string {
	const few = 8
	var out []string
	for _, k := range slices.Sorted(maps.Keys(a.Records)) {
		switch other, ok := b.Records[k]; {
		case len(out) >= few:
		case !ok:
			out = append(out, fmt.Sprintf("%s is missing", k))
		case other != a.Records[k]:
			out = append(out, fmt.Sprintf("%s differs: %.300s; want %.300s", k, other, a.Records[k]))
		}
	}
	for _, k := range slices.Sorted(maps.Keys(b.Records)) {
		if _, ok := a.Records[k]; !ok && len(out) < 2*few {
			out = append(out, fmt.Sprintf("%s should not be there", k))
		}
	}
	for _, q := range slices.Sorted(maps.Keys(a.Answers)) {
		if !slices.Equal(a.Answers[q], b.Answers[q]) {
			out = append(out, fmt.Sprintf("query %q: %d hits, want %d: %s", q, len(b.Answers[q]), len(a.Answers[q]),
				firstDifference(b.Answers[q], a.Answers[q])))
		}
	}
	return out
}

func firstDifference(got, want []partition.Key) string {
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			return fmt.Sprintf("at %d: %v, not %v", i, got[min(i, len(got)):min(i+1, len(got))],
				want[min(i, len(want)):min(i+1, len(want))])
		}
	}
	return "none"
}
