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

// said is what p says of itself, in the words of package community.
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

// Weigh is the verdict on p as its record is to have it, and says where the account stands. had is the record that is
// kept, nil = none; overrides are what persons said, in order. What was judged on the same (j) is not judged again.
func (r *Rules) Weigh(p Person, had *store.Record, overrides []store.Override, j *account.Judged,
	now time.Time) (of *store.Verdict, stands string, err error) {
	sum, err := p.sum(r.Community)
	if err != nil {
		return nil, "", err // strings and numbers are JSON
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

// LastSaid is when a person said something last.
func LastSaid(all []store.Override) time.Time {
	if len(all) == 0 {
		return time.Time{}
	}
	return all[len(all)-1].At
}

// kept is a judge's verdict as it is stored.
func kept(v community.Verdict, community string, at time.Time) *store.Verdict {
	out := &store.Verdict{V: store.VerdictVersion, Verdict: v.Verdict, Score: v.Score, By: community, At: at}
	for _, e := range v.Evidence {
		out.Evidence = append(out.Evidence, store.Evidence(e))
	}
	return out
}

// ofJudge is what the judge alone says in a stored verdict.
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

// Overruled is a judge's verdict on k, nil = there is none, after what persons said.
func Overruled(k partition.Key, v *store.Verdict, all []store.Override) *store.Verdict {
	if len(all) == 0 || all[len(all)-1].Verdict == "" {
		return v
	}
	var o community.Overrides
	last := all[len(all)-1]
	if o.Add(community.Override{ID: string(k), Verdict: last.Verdict, By: last.By, Why: last.Why, At: last.At}) != nil {
		return v // the store has checked it
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
	r.Verdict = Overruled(r.Key, v, all)
}

// Mistakes is how the judge stands against persons' words, of records that have both.
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
