package follow

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/text/language"

	"github.com/echo-node/echo-node/crawler/judge/community"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Scope is who is followed.
type Scope string

// The scopes.
const (
	Seeds     Scope = "seeds"     // whom a person named, nobody else
	Community Scope = "community" // and whom the Rules find to belong
	Everybody Scope = "all"       // and whoever they lead to
)

// Person is what a verdict is given on.
type Person struct {
	Key     partition.Key
	Seed    bool // a person named it
	Profile *store.Record
	// Langs counts the languages that the posts read so far declare.
	Langs map[string]int
	Texts []string // that it wrote, the newest first; as many as a judge looks at
	Edges community.Edges
}

// Rules say who belongs. A person's list goes before every other evidence.
type Rules struct {
	Follow  Scope // default Seeds
	Include map[partition.Key]bool
	Exclude map[partition.Key]bool
	// Countries (ISO 3166-1 alpha-2, upper case) and Langs (BCP 47) are what the community is known by;
	// either may be empty.
	Countries []string
	Langs     []string
	// Country is the country of a place as people write it, "" when it cannot be told. nil = no place counts.
	Country func(text string) string
	// Judge weighs all that this peer knows of somebody in place of the declared places and languages:
	// community.Judge.Judge. nil = those.
	Judge func(community.Profile, []string, community.Edges) community.Verdict
	// Community names what the rules hold people against, with its version. What was judged
	// by another is judged again.
	Community string
}

// Validate reports the first fault of r.
func (r *Rules) Validate() error {
	switch r.Follow {
	case "", Seeds, Community, Everybody:
	default:
		return fmt.Errorf("social: follow %q: give %s, %s or %s", r.Follow, Seeds, Community, Everybody)
	}
	for _, l := range r.Langs {
		if _, err := language.ParseBase(l); err != nil {
			return fmt.Errorf("social: language %q: %w", l, err)
		}
	}
	if r.Follow == Community && len(r.Countries)+len(r.Langs)+len(r.Include) == 0 && r.Judge == nil {
		return fmt.Errorf("social: follow %s: nothing says who belongs: give countries, languages or a list", Community)
	}
	return nil
}

// Grows says whether who is found is looked at.
func (r *Rules) Grows() bool { return r.Follow == Community || r.Follow == Everybody }

// known says whether there is a community to belong to.
func (r *Rules) known() bool {
	return r.Judge != nil || len(r.Countries)+len(r.Langs)+len(r.Include)+len(r.Exclude) > 0
}

// verdict is whether p belongs.
func (r *Rules) verdict(p Person) community.Verdict {
	switch {
	case r.Exclude[p.Key]:
		return community.Verdict{Verdict: community.IsOut,
			Evidence: []community.Evidence{{Kind: "exclusion", Text: "on the exclude list"}}}
	case r.Include[p.Key]:
		return community.Verdict{Verdict: community.IsIn, Score: 1,
			Evidence: []community.Evidence{{Kind: "seed", Text: "on the include list"}}}
	case p.Seed:
		return community.Verdict{Verdict: community.IsIn, Score: 1, Evidence: []community.Evidence{{Kind: "seed",
			Text: "a seed"}}}
	case r.Judge != nil:
		return r.Judge(p.said(), p.Texts, p.Edges)
	}
	return r.declared(p)
}

// follows says whether somebody with that verdict is followed, in, is not, out, or may be, undecided.
// overruled: it is a person's word.
func (r *Rules) follows(v community.Verdict, p Person, overruled bool) string {
	switch {
	case r.Exclude[p.Key], r.Include[p.Key], overruled:
		return v.Verdict
	case p.Seed, r.Follow == Everybody:
		return community.IsIn
	case r.Follow != Community:
		return community.IsOut
	}
	return v.Verdict
}

// leastPosts is how many posts with a language are evidence.
const leastPosts = 10

// declared judges by what p says of itself. Two tests, is and is not, as in TwitterEcho: one
// positive decides, both or none leave it open.
func (r *Rules) declared(p Person) community.Verdict {
	v := community.Verdict{Verdict: community.IsUndecided, Score: 0.5, Evidence: []community.Evidence{}}
	is, isNot := false, false
	add := func(belongs bool, kind, format string, args ...any) {
		weight := -1.0
		if is, isNot = is || belongs, isNot || !belongs; belongs {
			weight = 1
		}
		v.Evidence = append(v.Evidence, community.Evidence{Kind: kind, Text: fmt.Sprintf(format, args...),
			Weight: weight})
	}
	if r.Country != nil && len(r.Countries) > 0 {
		for _, text := range p.Profile.Declared {
			if c := r.Country(text); c != "" {
				add(slices.Contains(r.Countries, c), "place", "%.60q is in %s", text, c)
			}
		}
	}
	if len(r.Langs) > 0 {
		ours, all := 0, 0
		for l, n := range p.Langs {
			all += n
			if slices.ContainsFunc(r.Langs, func(want string) bool { return sameLanguage(want, l) }) {
				ours += n
			}
		}
		if all >= leastPosts {
			add(2*ours >= all, "language", "%d of %d posts declare %s", ours, all, strings.Join(r.Langs, ", "))
		} else {
			v.Ask = []community.Ask{{What: community.AskTexts, Value: 0.5}}
		}
	}
	switch {
	case is && !isNot:
		v.Verdict, v.Score = community.IsIn, 1
	case isNot && !is:
		v.Verdict, v.Score = community.IsOut, 0
	}
	if v.Verdict != community.IsUndecided {
		v.Ask = nil
	}
	return v
}

func sameLanguage(want, have string) bool {
	base, _, _ := strings.Cut(strings.ToLower(have), "-")
	w, _, _ := strings.Cut(strings.ToLower(want), "-")
	return base == w
}

// Seeded says that a person named the account that is due, by its Key or by its name, or one that moved there.
func (r *Rules) Seeded(d store.Due) bool {
	return d.Depth == 0 || d.Referrer.Kind() == partition.KindName || r.movedHere(d)
}

// movedHere says that somebody who was followed moved to the account that is due.
func (r *Rules) movedHere(d store.Due) bool {
	return d.Depth == 1 && d.Referrer.Kind() == partition.KindAccount && !r.Grows()
}
