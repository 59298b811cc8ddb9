package follow

import (
	"encoding/json"
	"hash/fnv"
	"slices"
	"time"

	"github.com/echo-node/echo-node/crawler/judge/community"
	"github.com/echo-node/echo-node/crawler/social/account"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// said converts what p declares of itself to the types of package community.
func (p Person) said() community.Profile {
	r := p.Profile
	out := community.Profile{ID: string(p.Key), Name: r.Title, Handle: r.Author, Bio: r.Text, Lang: r.Lang, URL: r.URL,
		Bot: slices.Contains(r.Flags, "bot")}
	if len(r.Declared) > 0 {
		out.Location = r.Declared[0]
	}
	for _, f := range r.Fields {
		out.Fields = append(out.Fields, community.Field{Name: f.Name, Value: f.Value})
	}
	for _, l := range r.Links {
		// the target of a link is better evidence than the account's own server
		if u := l.Key.URL(); u != "" {
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

// sum returns a hash of all evidence for a verdict.
func (p Person) sum(community string) (uint64, error) {
	b, err := json.Marshal([]any{community, p.Seed, p.said(), p.Texts, p.Edges, p.Langs})
	h := fnv.New64a()
	_, _ = h.Write(b) // never fails
	return h.Sum64(), err
}

// Weigh returns the verdict on p for its record, and whether the account is followed: in, out, or
// undecided. had is the stored record, nil if there is none. overrides are the human overrides, in
// order. If the hash in j shows that the evidence has not changed, the judge is not called again.
func (r *Rules) Weigh(p Person, had *store.Record, overrides []store.Override, j *account.Judged,
	now time.Time) (of *store.Verdict, stands string, err error) {
	sum, err := p.sum(r.Community)
	if err != nil {
		return nil, "", err // not reached: strings and numbers can be encoded
	}
	var verdict community.Verdict
	at := now
	if had != nil && had.Verdict != nil && (had.Verdict.Override == nil || had.Verdict.Judged != nil) &&
		j.Known == sum {
		verdict, at = ofJudge(had.Verdict), had.Verdict.At
		verdict.Ask = j.Ask
	} else {
		verdict = r.verdict(p)
		if verdict.Verdict == community.IsUndecided && verdict.Score >= community.Stay && had != nil &&
			had.Verdict != nil &&
			had.Verdict.By == r.Community && ofJudge(had.Verdict).Verdict == community.IsIn {
			verdict.Verdict, verdict.Ask = community.IsIn, nil
		}
		j.Ask = verdict.Ask
	}
	j.Known, j.Said = sum, LastSaid(overrides)
	if r.known() {
		of = kept(verdict, r.Community, at)
	}
	of = Overruled(p.Key, of, overrides)
	if of == nil || of.Override == nil {
		return of, r.follows(verdict, p, false), nil
	}
	verdict.Verdict = of.Verdict
	return of, r.follows(verdict, p, true), nil
}

// LastSaid returns the time of the last human override.
func LastSaid(all []store.Override) time.Time {
	if len(all) == 0 {
		return time.Time{}
	}
	return all[len(all)-1].At
}

// kept converts a judge's verdict to the stored form.
func kept(v community.Verdict, community string, at time.Time) *store.Verdict {
	out := &store.Verdict{V: store.VerdictVersion, Verdict: v.Verdict, Score: v.Score, By: community, At: at}
	for _, e := range v.Evidence {
		out.Evidence = append(out.Evidence, store.Evidence(e))
	}
	return out
}

// ofJudge returns the judge's own part of a stored verdict, without the override.
func ofJudge(v *store.Verdict) community.Verdict {
	out := community.Verdict{Verdict: v.Verdict, Score: v.Score, Evidence: []community.Evidence{}}
	said := v.Evidence
	if v.Override != nil {
		if out.Verdict, out.Score = community.IsUndecided, 0.5; v.Judged != nil {
			out.Verdict, out.Score = v.Judged.Verdict, v.Judged.Score
		}
		said = said[min(1, len(said)):]
	}
	for _, e := range said {
		out.Evidence = append(out.Evidence, community.Evidence(e))
	}
	return out
}

// Overruled applies the last human override to the judge's verdict v on k. v is nil if there is
// none.
func Overruled(k partition.Key, v *store.Verdict, all []store.Override) *store.Verdict {
	if len(all) == 0 || all[len(all)-1].Verdict == "" {
		return v
	}
	var o community.Overrides
	last := all[len(all)-1]
	if o.Add(community.Override{ID: string(k), Verdict: last.Verdict, By: last.By, Why: last.Why, At: last.At}) != nil {
		return v // not reached: the store has validated it
	}
	judge := community.Verdict{Verdict: community.IsUndecided, Score: 0.5}
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

// Overrule applies the human overrides of an account, in order, to its record.
func Overrule(r *store.Record, all []store.Override) {
	v := r.Verdict
	if v != nil && v.Override != nil { // restore the judge's verdict first
		if v.Judged == nil {
			v = nil
		} else {
			v = kept(ofJudge(v), v.By, v.At)
		}
	}
	r.Verdict = Overruled(r.Key, v, all)
}

// Mistakes compares the judge with the human overrides, over the records that have both.
func Mistakes(records []store.Record) community.Report {
	var o community.Overrides
	judged := map[string]community.Verdict{}
	for _, r := range records {
		if r.Verdict == nil || r.Verdict.Override == nil {
			continue
		}
		x := r.Verdict.Override
		if o.Add(community.Override{ID: string(r.Key), Verdict: x.Verdict, By: x.By, Why: x.Why, At: x.At}) == nil &&
			r.Verdict.Judged != nil {
			judged[string(r.Key)] = ofJudge(r.Verdict)
		}
	}
	return o.Mistakes(judged)
}
