package geo

import (
	"cmp"
	"slices"
	"strings"

	"github.com/echo-node/echo-node/partition/geo/atlas"
)

// shortForms finds Portuguese names of several words by the ways in which people shorten them.
// People leave the small words out (Ponte Lima). They cut words to the first letter or end them
// with a dot (T. Vedras, Macedo de Cav.), or keep only the letters that one hears (Marinha
// Gde). They also write all as one word (#CaldasDaRainha). shortForms finds names of one word
// by common typing errors (Lisbao, Lisvoa).
type shortForms struct {
	byWord map[string][]longName // a word of the name that is written out -> names
	joined map[string]string     // name without its spaces -> name
	single []string              // municipalities of one word, sorted
}

// longName is a folded name of several words.
type longName struct {
	name   string
	words  []string // without the small ones
	admin1 string
	people int // who live there, or would mean it
}

// leastWritten is the smallest length of a word that must be written out in a short form.
const leastWritten = 4

// mostCut is the largest length of a word that may be the audible letters of a longer one.
const mostCut = 4

// newShortForms collects the Portuguese names of the table and of hand.tsv.
func newShortForms(g *Gazetteer) *shortForms {
	f := &shortForms{byWord: map[string][]longName{}, joined: map[string]string{}}
	for i := range g.table.Len() {
		if country, _ := g.table.Region(g.table.Row(i).Region); country != "PT" {
			continue
		}
		if p := g.table.Place(i); p.Rank != atlas.Country {
			n := p.Population
			if p.Rank <= atlas.Municipality {
				n = max(n, 10_000) // some have no population in the table
			}
			name := atlas.Fold(p.Name)
			f.add(name, p.Admin1, n)
			if p.Rank == atlas.Municipality {
				f.addSingle(name)
			}
		}
	}
	for name, senses := range g.hand {
		if s := senses[0]; s.place.Country == "PT" &&
			(s.kind == senseCity || s.kind == sensePart || s.kind == senseArea) {
			n := s.place.Population
			if s.kind == sensePart {
				n = 0
			}
			f.add(name, s.place.Admin1, n)
		}
	}
	f.addSingle("lisboa") // GeoNames calls it Lisbon
	f.addSingle("algarve")
	f.addSingle("alentejo")
	f.addSingle("madeira")
	f.addSingle("acores")
	slices.Sort(f.single)
	f.single = slices.Compact(f.single)
	return f
}

// leastMistyped is the smallest length of names that are matched with typing errors. Shorter
// names are one letter away from too many words.
const leastMistyped = 5

// addSingle adds a name of one word, if it is long enough.
func (f *shortForms) addSingle(name string) {
	if len(name) >= leastMistyped && !strings.Contains(name, " ") {
		f.single = append(f.single, name)
	}
}

// mistyped returns the only name that equals s with two letters exchanged. In a name of six or
// more letters, one letter may also be missing, extra, or replaced by one that sounds like it.
func (f *shortForms) mistyped(s string) string {
	found := ""
	for _, name := range f.single {
		if s[0] == name[0] && slip(s, name) {
			if found != "" {
				return ""
			}
			found = name
		}
	}
	return found
}

// slip reports whether s is name with one mistake.
func slip(s, name string) bool {
	if len(s) < leastMistyped || len(s) > len(name)+1 || len(s)+1 < len(name) {
		return false
	}
	i := 0
	for i < len(s) && i < len(name) && s[i] == name[i] {
		i++
	}
	long := len(name) > leastMistyped
	switch {
	case len(s) < len(name):
		return long && len(s) > leastMistyped && s[i:] == name[i+1:]
	case len(s) > len(name):
		return long && s[i+1:] == name[i:]
	case i+1 < len(s) && s[i] == name[i+1] && s[i+1] == name[i] && s[i+2:] == name[i+2:]:
		return true
	case i == len(s):
		return false
	}
	return long && s[i+1:] == name[i+1:] && strings.Contains(" bv vb sz zs cs sc ie ei ou uo mn nm jg gj ",
		" "+s[i:i+1]+name[i:i+1]+" ")
}

// add adds a folded name of several words, in a first division, where so many people live.
func (f *shortForms) add(name, admin1 string, people int) {
	words := longWords(strings.Fields(name))
	if len(words) < 2 {
		return
	}
	if j := strings.ReplaceAll(name, " ", ""); len(j) >= 8 {
		if other, ok := f.joined[j]; !ok || name < other {
			f.joined[j] = name
		}
	}
	for i, w := range words {
		if len(w) >= leastWritten && !slices.Contains(words[:i], w) {
			f.byWord[w] = append(f.byWord[w], longName{name, words, admin1, people})
		}
	}
}

// longWords returns the words of a name without the small ones.
func longWords(words []string) []string {
	return slices.DeleteFunc(slices.Clone(words), func(w string) bool {
		return strings.Contains(" de da do das dos d e o a os as ao aos l el ", " "+w+" ")
	})
}

// find returns the name for which words are short. It returns "" when there is none, or when
// another name in another first division is about as well known.
func (f *shortForms) find(words []word) string {
	if len(words) == 1 {
		if name := f.joined[words[0].folded]; name != "" {
			return name
		}
		return f.mistyped(words[0].folded)
	}
	words = slices.DeleteFunc(slices.Clone(words), func(w word) bool { return len(longWords([]string{w.folded})) == 0 })
	if len(words) < 2 {
		return ""
	}
	var found []longName
	for _, w := range words {
		for _, n := range f.byWord[w.folded] {
			if n.shortenedTo(words) {
				found = append(found, n)
			}
		}
	}
	if len(found) == 0 {
		return ""
	}
	best := slices.MinFunc(found, func(a, b longName) int {
		return cmp.Or(cmp.Compare(b.people, a.people), cmp.Compare(a.name, b.name), cmp.Compare(a.admin1, b.admin1))
	})
	const clearly = 5
	for _, n := range found {
		if n.admin1 != best.admin1 && n.people*clearly >= best.people {
			return ""
		}
	}
	return best.name
}

// shortenedTo reports whether each word is a short form of the name's word at its position.
func (n longName) shortenedTo(words []word) bool {
	if len(words) != len(n.words) {
		return false
	}
	for i, w := range words {
		if !shortFor(w, n.words[i]) {
			return false
		}
	}
	return true
}

// shortFor reports whether w is the word full or a short form of it. Three forms are short: its
// first letter, some of its letters up to a dot (Cav., St.), and some with the first and the last
// (Gde, Vzm).
func shortFor(w word, full string) bool {
	s := w.folded
	switch {
	case s == full:
		return true
	case s[0] != full[0] || len(s) > len(full):
		return false
	case !w.dot && len(s) > 1 && (len(s) > mostCut || s[len(s)-1] != full[len(full)-1]):
		return false
	}
	for i := 0; i < len(full) && s != ""; i++ {
		if s[0] == full[i] {
			s = s[1:]
		}
	}
	return s == ""
}
