package community

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/echo-node/echo-node/crawler/judge/lang"
	"github.com/echo-node/echo-node/partition/geo"
)

// Version is of the judge: what another one said is to be judged again.
const Version = 2

// Caps of what is looked at.
const (
	MaxField  = 4 << 10 // bytes of one text of a profile
	MaxFields = 16      // declared fields
	MaxTexts  = 200     // texts; more tell hardly more
)

// From In up an account is in, from Out down it is out. Who is out is not looked at
// again, who is in is: so out has to be the surer.
const (
	In  = 0.92
	Out = 0.03
	// Stay is for who crawls: who was in is so until the score is below it. Neighbours' verdicts
	// come and go, and following somebody anew costs more than going on.
	Stay = 0.8
)

// Profile is what an account says of itself. Every field may be empty.
type Profile struct {
	ID       string  `json:"id"` // a Key, or any name that is unique
	Name     string  `json:"name,omitempty"`
	Handle   string  `json:"handle,omitempty"`
	Bio      string  `json:"bio,omitempty"`
	Location string  `json:"location,omitempty"`
	TimeZone string  `json:"time_zone,omitempty"`
	Lang     string  `json:"lang,omitempty"` // of the interface, BCP 47
	URL      string  `json:"url,omitempty"`
	Fields   []Field `json:"fields,omitempty"`
	Bot      bool    `json:"bot,omitempty"` // declared
}

// Field is a name and a value that an account shows.
type Field struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Counts are neighbours that have been judged.
type Counts struct {
	In  int `json:"in"`
	Out int `json:"out"`
}

// Edges are the judged neighbours of an account by kind.
type Edges struct {
	Follows     Counts `json:"follows"`
	Followers   Counts `json:"followers"`
	Mentions    Counts `json:"mentions"`
	MentionedBy Counts `json:"mentioned_by"`
}

// Evidence is one thing that speaks for belonging (weight above 0, in nats) or
// against it.
type Evidence struct {
	// seed, exclusion, override, place, origin, language, name, word, zone, tag, domain, hashtag, neighbours, machine
	Kind   string  `json:"kind"`
	Text   string  `json:"text"` // what was found
	Weight float64 `json:"weight"`
}

// Verdict is whether an account belongs.
type Verdict struct {
	Verdict  string     `json:"verdict"` // in, out, undecided
	Score    float64    `json:"score"`   // 0 to 1: how likely it belongs
	Evidence []Evidence `json:"evidence"`
	Ask      []Ask      `json:"ask,omitempty"` // of an undecided one: what to ask for, the best first
}

// The verdicts.
const (
	IsIn        = "in"
	IsOut       = "out"
	IsUndecided = "undecided"
)

// Judge weighs evidence for one community. Immutable, so safe for concurrent use.
type Judge struct {
	c              Community
	places         *geo.Gazetteer
	langs          *lang.Judge
	names, aliens  words
	words, against words
	born           words
	hashtags       words
	zones          map[string]bool
}

// New makes a judge; places and langs may be shared.
func New(c Community, places *geo.Gazetteer, langs *lang.Judge) (*Judge, error) {
	if places == nil || langs == nil {
		return nil, errors.New("who: no gazetteer, or no judge of languages")
	}
	j := &Judge{c: c, places: places, langs: langs, names: newWords(c.Names), aliens: newWords(c.NotNames),
		words:   newWords(c.Words),
		against: newWords(c.NotWords), born: newWords(c.Born), hashtags: newWords(c.Hashtags), zones: map[string]bool{}}
	for _, z := range c.Zones {
		j.zones[strings.ToLower(z)] = true
	}
	return j, nil
}

// Open is New with the gazetteer and the judge of languages that come with the program.
func Open(c Community) (*Judge, error) {
	places, err := geo.Open()
	if err != nil {
		return nil, err
	}
	langs, err := lang.Open()
	if err != nil {
		return nil, err
	}
	return New(c, places, langs)
}

// The weights, in nats. Each is about what the logarithm of the ratio of
// frequencies inside and outside of the community is, where many are at hand
// that look like it without being it; one piece alone never decides.
const (
	prior          = -0.3
	weightPlace    = 1.8 // times confidence
	mostHome       = 2.6 // of place, zone and domain together: all of them tell where somebody lives
	emigrant       = 0.4 // of that, against a language that is known from enough texts
	weightBorn     = 4.0
	weightWriting  = 5.0 // the variety of a language that tells from the rivals
	weightForeign  = 3.0 // another language
	weightOwn      = 2.5 // the community's language where there is no rival
	weightShared   = 0.2
	weightName     = 0.8
	mostNames      = 1.6
	weightWord     = 2.2
	mostWords      = 4.4
	weightZone     = 1.0
	weightTag      = 0.6
	weightRivalTag = 1.2
	weightDomain   = 1.4
	weightHashtag  = 0.6
	mostHashtags   = 1.8
	weightBot      = 9.0 // declared
	weightMachine  = 8.0 // by its texts
	// of neighbours, times the logarithm of how many times more are in than out
	weightFollows   = 2.5
	weightFollowers = 2.0
	weightMentions  = 1.0
	mostNeighbours  = 6.0
	temper          = 0.85 // of the sum: pieces of evidence overlap
)

// Judge weighs what is known of an account: its profile, some of its texts, and
// how its neighbours were judged.
func (j *Judge) Judge(p Profile, texts []string, e Edges) Verdict {
	if v, ok := j.listed(p.ID); ok {
		return v
	}
	texts = texts[:min(len(texts), MaxTexts)]
	var all []Evidence
	add := func(kind, text string, w float64) {
		if w != 0 {
			all = append(all, Evidence{kind, clip(text, 120), round(w)})
		}
	}
	j.profile(p, add)
	if machine(p, texts, add) {
		texts = nil // nobody wrote them, so they tell nobody's language
	}
	lives(all, j.writing(texts, add))
	j.neighbours(e, add)
	slices.SortStableFunc(all, func(a, b Evidence) int { return cmp.Compare(math.Abs(b.Weight), math.Abs(a.Weight)) })
	sum := prior
	for _, x := range all {
		sum += temper * x.Weight
	}
	v := Verdict{Verdict: IsUndecided, Score: round(1 / (1 + math.Exp(-sum))), Evidence: all}
	switch {
	case v.Score >= In:
		v.Verdict = IsIn
	case v.Score <= Out:
		v.Verdict = IsOut
	default:
		v.Ask = asks(sum, texts, e)
	}
	if v.Evidence == nil {
		v.Evidence = []Evidence{}
	}
	return v
}

func (j *Judge) listed(id string) (Verdict, bool) {
	switch {
	case id == "":
	case slices.Contains(j.c.Seeds, id):
		return Verdict{IsIn, 1, []Evidence{{"seed", id, 0}}, nil}, true
	case slices.Contains(j.c.Exclusions, id):
		return Verdict{IsOut, 0, []Evidence{{"exclusion", id, 0}}, nil}, true
	}
	return Verdict{}, false
}

// round to six digits: more would be noise, and differ between machines.
func round(x float64) float64 { return math.Round(x*1e6) / 1e6 }

func clip(s string, most int) string {
	if len(s) > most {
		s = s[:most]
	}
	return strings.ToValidUTF8(s, "")
}
