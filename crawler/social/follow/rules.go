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

// Scope says which accounts are followed.
type Scope string

// The scopes.
const (
	Seeds     Scope = "seeds"     // only accounts named by a person
	Community Scope = "community" // and accounts that the Rules find to belong
	Everybody Scope = "all"       // and all accounts that those lead to
)

// Person is the evidence on one account.
type Person struct {
	Key     partition.Key
	Seed    bool // a person named it
	Profile *store.Record
	// Langs counts the languages that the posts read so far declare.
	Langs map[string]int
	Texts []string // texts that it wrote, the newest first, at most community.MaxTexts
	Edges community.Edges
}

// Rules decide who belongs to the community. The lists Include and Exclude take precedence over all
// other evidence.
type Rules struct {
	Follow  Scope // default Seeds
	Include map[partition.Key]bool
	Exclude map[partition.Key]bool
	// Countries (ISO 3166-1 alpha-2, upper case) and Langs (BCP 47) describe the community. Either
	// may be empty.
	Countries []string
	Langs     []string
	// Country returns the country of a place as people write it, "" if it cannot tell. If it is
	// nil, places are no evidence.
	Country func(text string) string
	// Judge replaces the test of declared places and languages. It weighs all that this peer knows
	// of an account: community.Judge.Judge. If it is nil, that test is used.
	Judge func(community.Profile, []string, community.Edges) community.Verdict
	// Community names the community that is judged for, with its version. A verdict for another
	// version is given again.
	Community string
}

// Validate returns the first error in r.
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

// Grows reports whether accounts that posts and lists lead to are looked at.
func (r *Rules) Grows() bool { return r.Follow == Community || r.Follow == Everybody }

// known reports whether r describes a community.
func (r *Rules) known() bool {
	return r.Judge != nil || len(r.Countries)+len(r.Langs)+len(r.Include)+len(r.Exclude) > 0
}

// verdict decides whether p belongs.
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

// follows decides whether an account with that verdict is followed: in, out, or undecided (perhaps
// later). overruled says that the verdict is a human override.
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

// leastPosts is how many posts that declare a language make it evidence.
const leastPosts = 10

// declared judges p by what p declares of itself. As in TwitterEcho there are two tests, "is" and
// "is not". If only one is positive, it decides; otherwise the result is undecided.
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

// sameLanguage compares the base languages only: pt-BR is the same as pt.
func sameLanguage(want, have string) bool {
	base, _, _ := strings.Cut(strings.ToLower(have), "-")
	w, _, _ := strings.Cut(strings.ToLower(want), "-")
	return base == w
}

// Seeded reports whether a person named the account that is due, by its Key or by its name, or
// named an account that moved there.
func (r *Rules) Seeded(d store.Due) bool {
	return d.Depth == 0 || d.Referrer.Kind() == partition.KindName || r.movedHere(d)
}

// movedHere reports whether a followed account moved to the account that is due.
func (r *Rules) movedHere(d store.Due) bool {
	return d.Depth == 1 && d.Referrer.Kind() == partition.KindAccount && !r.Grows()
}
