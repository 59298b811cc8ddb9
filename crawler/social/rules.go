package social

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/text/language"

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

// Standing is where somebody stands to the community.
type Standing string

// The standings.
const (
	In        Standing = "in"
	Out       Standing = "out"
	Undecided Standing = "undecided"
)

// Verdict is a Standing with what it rests on.
type Verdict struct {
	Is  Standing
	Why []string // the evidence, in words
}

// Person is what a verdict is given on.
type Person struct {
	Key     partition.Key
	Profile *store.Record
	// Langs counts the languages that the posts read so far declare.
	Langs map[string]int
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
	// Judge decides in place of the declared places and languages. nil = those.
	Judge func(Person) Verdict
}

func (r *Rules) validate() error {
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

// grows says whether who is found is looked at.
func (r *Rules) grows() bool { return r.Follow == Community || r.Follow == Everybody }

// verdict is whether p is followed. seeded: a person named it.
func (r *Rules) verdict(p Person, seeded bool) Verdict {
	switch {
	case r.Exclude[p.Key]:
		return Verdict{Out, []string{"on the exclude list"}}
	case r.Include[p.Key]:
		return Verdict{In, []string{"on the include list"}}
	case seeded:
		return Verdict{In, []string{"a seed"}}
	case r.Follow == Everybody:
		return Verdict{In, []string{"everybody is followed"}}
	case r.Follow != Community:
		return Verdict{Out, []string{"only seeds are followed"}}
	case r.Judge != nil:
		return r.Judge(p)
	}
	return r.declared(p)
}

// leastPosts is how many posts with a language are evidence.
const leastPosts = 10

// declared judges by what p says of itself. Two tests, is and is not, as in TwitterEcho: one
// positive decides, both or none leave it open.
func (r *Rules) declared(p Person) Verdict {
	var is, isNot []string
	if r.Country != nil && len(r.Countries) > 0 {
		for _, text := range p.Profile.Declared {
			switch c := r.Country(text); {
			case c == "":
			case slices.Contains(r.Countries, c):
				is = append(is, fmt.Sprintf("place %.60q is in %s", text, c))
			default:
				isNot = append(isNot, fmt.Sprintf("place %.60q is in %s", text, c))
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
			words := fmt.Sprintf("%d of %d posts declare %s", ours, all, strings.Join(r.Langs, ", "))
			if 2*ours >= all {
				is = append(is, words)
			} else {
				isNot = append(isNot, words)
			}
		}
	}
	switch {
	case len(is) > 0 && len(isNot) == 0:
		return Verdict{In, is}
	case len(isNot) > 0 && len(is) == 0:
		return Verdict{Out, isNot}
	}
	return Verdict{Undecided, append(is, isNot...)}
}

func sameLanguage(want, have string) bool {
	base, _, _ := strings.Cut(strings.ToLower(have), "-")
	w, _, _ := strings.Cut(strings.ToLower(want), "-")
	return base == w
}

// opted is the wish not to be collected that p has said, "" = none. Hashtags are meant
// for programs like this; the flags of a server say how to be shown, and are obeyed there (NoIndex), but
// for that of who is not to be shown to us at all.
func opted(flags []string) string {
	for _, f := range flags {
		switch f {
		case "#nobot", "#nocrawl", "#noarchive", notLoggedIn:
			return f
		}
	}
	return ""
}
