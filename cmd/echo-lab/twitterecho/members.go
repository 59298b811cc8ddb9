package twitterecho

import (
	_ "embed" // the places
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/echo-node/echo-node/crawler/judge/community"
	"github.com/echo-node/echo-node/crawler/judge/lang"
)

//go:embed places.json
var places []byte

// enoughTexts is the number of posts from which the dissertation judges a language.
const enoughTexts = 30

// Judge decides which accounts are members of one community, like the dissertation. It is
// immutable, so it is safe for concurrent use.
type Judge struct {
	inside, outside []string // places, folded
	foreign         []string // names, folded
	zones           map[string]bool
	languages       []string
	params          Params
}

// Open returns the judge of a community that is embedded in echo-node: portugal or brazil.
func Open(name string) (*Judge, error) {
	c, err := community.Embedded(name)
	if err != nil {
		return nil, err
	}
	var lists map[string]struct {
		Places    []string `json:"places"`
		NotPlaces []string `json:"not_places"`
	}
	if err := json.Unmarshal(places, &lists); err != nil {
		return nil, fmt.Errorf("twitterecho: places: %w", err)
	}
	l, ok := lists[c.Name]
	if !ok {
		return nil, fmt.Errorf("twitterecho: no places of %q", c.Name)
	}
	params, err := Fitted()
	if err != nil {
		return nil, err
	}
	j := &Judge{inside: foldAll(l.Places), outside: foldAll(l.NotPlaces), foreign: foldAll(c.NotNames),
		zones: map[string]bool{}, languages: c.Languages, params: params}
	for _, z := range c.Zones {
		j.zones[strings.ToLower(z)] = true
	}
	return j, nil
}

// Judge returns the verdict, in terms of package community, on a profile and posts: IsIn, IsOut or
// IsUndecided.
func (j *Judge) Judge(p community.Profile, texts []string) string {
	location := fold(p.Location)
	is, not := hasOne(location, j.inside), hasOne(location, j.outside)
	if zone := strings.ToLower(p.TimeZone); zone != "" && len(j.zones) > 0 {
		is, not = is || j.zones[zone], not || !j.zones[zone]
	}
	not = not || hasOne(fold(p.Name), j.foreign)
	switch {
	case is && !not:
		return community.IsIn
	case not && !is:
		return community.IsOut
	case len(texts) < enoughTexts:
		return community.IsUndecided
	}
	l := j.params.Language(texts...)
	switch {
	case slices.Contains(j.languages, l.String()):
		return community.IsIn
	case l == lang.Other && !slices.ContainsFunc(j.languages, known):
		return community.IsUndecided // the method only distinguishes Portuguese from other languages
	}
	return community.IsOut
}

// known reports whether the method can recognise the language of a tag.
func known(tag string) bool { return tag == lang.PtPT.String() || tag == lang.PtBR.String() }

// hasOne reports whether a folded text has one of the folded phrases, as whole words.
func hasOne(text string, phrases []string) bool {
	return slices.ContainsFunc(phrases, func(p string) bool { return strings.Contains(text, p) })
}

func foldAll(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = fold(s)
	}
	return out
}

// fold returns text in lower case without accents, each word between single blanks.
func fold(text string) string {
	plain := strings.Map(func(r rune) rune {
		switch {
		case unicode.Is(unicode.Mn, r):
			return -1
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return ' '
	}, norm.NFD.String(text))
	return " " + strings.Join(strings.Fields(plain), " ") + " "
}
