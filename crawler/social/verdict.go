package social

import (
	"cmp"
	"encoding/json"
	"errors"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/echo-node/echo-node/crawler/focus/who"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// What a verdict is looked for in, at most.
const (
	askedPosts    = 60   // that are read of who cannot be decided on
	scannedPosts  = 2000 // kept posts, of which the newest count
	mostNeighbour = 500  // accounts of a list, and accounts mentioned, whose verdict is looked up
	grownFromList = 2000 // candidates of a list that was read before its account was found to belong
)

// When somebody who cannot be decided on is looked at again.
const (
	askMost   = 30 * time.Minute // before more is asked for: the likelier that it decides, the sooner
	listsTime = time.Hour        // for lists to be read
	// with nothing left to ask for, its neighbours may be judged meanwhile; then twice as long, up to outsiders
	openLeast = 6 * time.Hour
)

// judged is what is kept of the last verdict, with a Key's state.
type judged struct {
	Known uint64        `json:"known,omitempty"` // a sum of what it was given on
	Ask   []who.Ask     `json:"ask,omitempty"`   // what would tell more, the best first
	Had   []string      `json:"had,omitempty"`   // of that, what was asked for
	Next  string        `json:"next,omitempty"`  // what is asked for by the visit that is due
	Wait  time.Duration `json:"wait,omitempty"`
	Said  time.Time     `json:"said,omitzero"` // a person's last word that was heeded
}

// said is what p says of itself, in the words of package who.
func (p Person) said() who.Profile {
	r := p.Profile
	out := who.Profile{ID: string(p.Key), Name: r.Title, Handle: r.Author, Bio: r.Text, Lang: r.Lang, URL: r.URL,
		Bot: slices.Contains(r.Flags, "bot")}
	if len(r.Declared) > 0 {
		out.Location = r.Declared[0]
	}
	for _, f := range r.Fields {
		out.Fields = append(out.Fields, who.Field{Name: f.Name, Value: f.Value})
	}
	for _, l := range r.Links {
		if u := l.Key.URL(); u != "" { // where it leads tells more than which server the account is at
			out.URL = u
			break
		}
	}
	most := leastPosts - 1
	for l, n := range p.Langs {
		if out.Lang == "" && n > most || r.Lang == "" && n > most {
			out.Lang, most = l, n
		}
	}
	return out
}

// sum is of all that a verdict is given on.
func (p Person) sum(community string) (uint64, error) {
	b, err := json.Marshal([]any{community, p.Seed, p.said(), p.Texts, p.Edges, p.Langs})
	h := fnv.New64a()
	_, _ = h.Write(b) // never fails
	return h.Sum64(), err
}

// person gathers what this peer knows of the account.
func (v *visit) person(rec *store.Record) (Person, error) {
	k := v.t.Due.Key
	p := Person{Key: k, Seed: v.seeded(), Profile: rec, Langs: v.st.Langs}
	if v.s.o.Rules.Judge == nil {
		return p, nil
	}
	type text struct {
		at   time.Time
		said string
	}
	var texts []text
	seen, mentions := map[string]bool{}, map[partition.Key]bool{}
	take := func(r store.Record) {
		if seen[r.Post] || r.Deleted || r.By != "" || r.BoostOf != "" {
			return
		}
		seen[r.Post] = true
		at := r.FetchedAt
		if r.PublishedAt != nil {
			at = *r.PublishedAt
		}
		if strings.TrimSpace(r.Text) != "" {
			texts = append(texts, text{at, r.Text})
		}
		for _, m := range r.Mentions {
			if m.Key != "" && len(mentions) < mostNeighbour {
				mentions[m.Key] = true
			}
		}
	}
	for _, r := range v.res.Posts {
		take(r)
	}
	sl, err := v.s.o.Store.Where(k)
	if err != nil {
		return p, err
	}
	n := 0
	if err := v.s.o.Store.Posts(sl, k, "", func(r store.Record) (bool, error) {
		take(r)
		n++
		return n < scannedPosts, nil
	}); err != nil {
		return p, err
	}
	slices.SortFunc(texts, func(a, b text) int { return cmp.Or(b.at.Compare(a.at), cmp.Compare(a.said, b.said)) })
	for _, t := range texts[:min(len(texts), who.MaxTexts)] {
		p.Texts = append(p.Texts, t.said)
	}
	p.Edges, err = v.s.neighbours(sl, v.t.Due, mentions)
	return p, err
}

// neighbours counts the verdicts, as far as they are in this peer's store, of whom an account follows,
// who follows it, whom it mentions, and who led here.
func (s *Source) neighbours(sl partition.Slice, d store.Due, mentions map[partition.Key]bool) (e who.Edges, err error) {
	count := func(c *who.Counts, k partition.Key) error {
		word, err := s.verdictOf(k)
		switch word {
		case who.IsIn:
			c.In++
		case who.IsOut:
			c.Out++
		}
		return err
	}
	for _, l := range []struct {
		side string
		c    *who.Counts
	}{{"/following", &e.Follows}, {"/followers", &e.Followers}} {
		n := 0
		if err := s.o.Store.Edges(sl, d.Key+partition.Key(l.side), "", func(x store.Edge) (bool, error) {
			if x.GoneAt != nil || x.Sure == store.SureDoubted {
				return true, nil
			}
			n++
			return n < mostNeighbour, count(l.c, x.To)
		}); err != nil {
			return e, err
		}
	}
	for k := range mentions {
		if err := count(&e.Mentions, k); err != nil {
			return e, err
		}
	}
	if by := d.Referrer.Account(); by != "" && by != d.Key {
		err = count(&e.MentionedBy, by)
	}
	return e, err
}

// verdictOf is the word of the verdict on an account, "" when none is known here.
func (s *Source) verdictOf(k partition.Key) (string, error) {
	r, err := s.o.Store.Record(k)
	if errors.Is(err, store.ErrNotExist) {
		return "", nil
	}
	return r.VerdictWord(), err
}

// followed says whether whom a list of an account names are candidates: not where the list was read to
// judge the account by.
func (s *Source) followed(k partition.Key) (bool, error) {
	word, err := s.verdictOf(k)
	if err != nil {
		return false, &storeError{err}
	}
	return word == "" || word == who.IsIn || s.o.Rules.Follow == Everybody, nil
}

// stored is the account's record as it is kept, nil when there is none.
func (v *visit) stored() (*store.Record, error) {
	r, err := v.s.o.Store.Record(v.t.Due.Key)
	if errors.Is(err, store.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &storeError{err}
	}
	return &r, nil
}

// waiting is the record of somebody who could not be decided on, or of whom a person said
// something: as long as the profile is not too old, judging again costs no call.
func (v *visit) waiting() (*store.Record, error) {
	if v.st.ID == "" || v.now.Sub(v.st.Profiled) >= outsiders {
		return nil, nil
	}
	if v.st.Outside != who.IsUndecided {
		all, err := v.overrides()
		if err != nil || lastEvent(all).Equal(v.st.Judged.Said) {
			return nil, err
		}
	}
	r, err := v.stored()
	if r != nil && r.Kind != store.KindProfile {
		r = nil
	}
	return r, err
}

// weigh gives rec its verdict, and says where the account stands. What was judged on the same is not judged again.
func (v *visit) weigh(rec *store.Record) (stands string, err error) {
	rules := &v.s.o.Rules
	p, err := v.person(rec)
	if err != nil {
		return "", &storeError{err}
	}
	sum, err := p.sum(rules.Community)
	if err != nil {
		return "", err // strings and numbers are JSON
	}
	had, err := v.stored()
	if err != nil {
		return "", err
	}
	var verdict who.Verdict
	at := v.now
	if had != nil && had.Verdict != nil && (had.Verdict.Override == nil || had.Verdict.Judged != nil) &&
		v.st.Judged.Known == sum {
		verdict, at = ofJudge(had.Verdict), had.Verdict.At
		verdict.Ask = v.st.Judged.Ask
	} else {
		verdict = rules.verdict(p)
		if verdict.Verdict == who.IsUndecided && verdict.Score >= who.Stay && had != nil && had.Verdict != nil &&
			had.Verdict.By == rules.Community && ofJudge(had.Verdict).Verdict == who.IsIn {
			verdict.Verdict, verdict.Ask = who.IsIn, nil
		}
		v.st.Judged.Ask = verdict.Ask
	}
	v.st.Judged.Known = sum
	overrides, err := v.overrides()
	if err != nil {
		return "", err
	}
	v.st.Judged.Said = lastEvent(overrides)
	var of *store.Verdict
	if rules.known() {
		of = kept(verdict, rules.Community, at)
	}
	rec.Verdict = overruled(rec.Key, of, overrides)
	if rec.Verdict == nil || rec.Verdict.Override == nil {
		return rules.follows(verdict, p, false), nil
	}
	verdict.Verdict = rec.Verdict.Verdict
	return rules.follows(verdict, p, true), nil
}

// lastEvent is when a person said something last.
func lastEvent(all []store.Override) time.Time {
	if len(all) == 0 {
		return time.Time{}
	}
	return all[len(all)-1].At
}

// overrides are what persons said of the account.
func (v *visit) overrides() ([]store.Override, error) {
	sl, err := v.s.o.Store.Where(v.t.Due.Key)
	if err != nil {
		return nil, &storeError{err}
	}
	all, err := v.s.o.Store.Overrides(sl, v.t.Due.Key)
	if err != nil {
		return nil, &storeError{err}
	}
	return all, nil
}

// kept is a judge's verdict as it is stored.
func kept(v who.Verdict, community string, at time.Time) *store.Verdict {
	out := &store.Verdict{V: store.VerdictVersion, Verdict: v.Verdict, Score: v.Score, By: community, At: at}
	for _, e := range v.Evidence {
		out.Evidence = append(out.Evidence, store.Evidence(e))
	}
	return out
}

// ofJudge is what the judge alone says in a stored verdict.
func ofJudge(v *store.Verdict) who.Verdict {
	out := who.Verdict{Verdict: v.Verdict, Score: v.Score, Evidence: []who.Evidence{}}
	said := v.Evidence
	if v.Override != nil {
		if out.Verdict, out.Score = who.IsUndecided, 0.5; v.Judged != nil {
			out.Verdict, out.Score = v.Judged.Verdict, v.Judged.Score
		}
		said = said[min(1, len(said)):]
	}
	for _, e := range said {
		out.Evidence = append(out.Evidence, who.Evidence(e))
	}
	return out
}

// overruled is a judge's verdict on k, nil = there is none, after what persons said.
func overruled(k partition.Key, v *store.Verdict, all []store.Override) *store.Verdict {
	if len(all) == 0 || all[len(all)-1].Verdict == "" {
		return v
	}
	var o who.Overrides
	last := all[len(all)-1]
	if o.Add(who.Override{ID: string(k), Verdict: last.Verdict, By: last.By, Why: last.Why, At: last.At}) != nil {
		return v // the store has checked it
	}
	judge := who.Verdict{Verdict: who.IsUndecided, Score: 0.5}
	out := &store.Verdict{At: last.At}
	if v != nil {
		judge, out = ofJudge(v),
			&store.Verdict{By: v.By, At: v.At, Judged: &store.Judged{Verdict: v.Verdict, Score: v.Score}}
	}
	final := o.Apply(string(k), judge)
	ruled := kept(final, out.By, out.At)
	ruled.Override, ruled.Judged = &last, out.Judged
	return ruled
}

// Overrule puts what persons said of an account, in order, into its record.
func Overrule(r *store.Record, all []store.Override) {
	v := r.Verdict
	if v != nil && v.Override != nil { // back to what the judge said
		if v.Judged == nil {
			v = nil
		} else {
			v = kept(ofJudge(v), v.By, v.At)
		}
	}
	r.Verdict = overruled(r.Key, v, all)
}

// Mistakes is how the judge stands against persons' words, of records that have both.
func Mistakes(records []store.Record) who.Report {
	var o who.Overrides
	judged := map[string]who.Verdict{}
	for _, r := range records {
		if r.Verdict == nil || r.Verdict.Override == nil {
			continue
		}
		x := r.Verdict.Override
		if o.Add(who.Override{ID: string(r.Key), Verdict: x.Verdict, By: x.By, Why: x.Why, At: x.At}) == nil &&
			r.Verdict.Judged != nil {
			judged[string(r.Key)] = ofJudge(r.Verdict)
		}
	}
	return o.Mistakes(judged)
}
