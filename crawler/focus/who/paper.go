package who

import (
	"slices"
	"strings"

	"github.com/echo-node/echo-node/crawler/focus/lang"
)

// Paper is the method of E. J. S. L. de Oliveira, "TwitterEcho" (MSc dissertation,
// FEUP, 2011), as a baseline: location, time zone and name against editable lists; of the tests
// "is" and "is not" only one may be positive, else the account is undecided and
// its posts, if there are enough, decide by their language. The lists are those of the
// Community (its own had 192 places inside, 187 outside and 309 names).
func (j *Judge) Paper(p Profile, texts []string) string {
	location := fold(clip(p.Location, MaxField))
	is := len(newWords(j.c.Places).in(location)) > 0
	not := len(newWords(j.c.NotPlaces).in(location)) > 0
	if zone := strings.ToLower(p.TimeZone); zone != "" && len(j.zones) > 0 {
		is, not = is || j.zones[zone], not || !j.zones[zone]
	}
	not = not || len(j.aliens.in(fold(clip(p.Name, MaxField)))) > 0
	switch {
	case is && !not:
		return IsIn
	case not && !is:
		return IsOut
	case len(texts) < paperTexts:
		return IsUndecided
	}
	l := j.langs.Paper(texts...)
	switch {
	case slices.Contains(j.c.Languages, l.String()):
		return IsIn
	case l == lang.Other && !slices.ContainsFunc(j.c.Languages, paperKnows):
		return IsUndecided // it tells Portuguese from other languages, and no more
	}
	return IsOut
}

// paperTexts is how many posts the dissertation judges a language by.
const paperTexts = 30

func paperKnows(tag string) bool { return tag == lang.PtPT.String() || tag == lang.PtBR.String() }
