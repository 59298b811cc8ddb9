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

// Version is the version of the judge. Verdicts of another version must be judged again.
const Version = 2

// Limits for the input of Judge.
const (
	MaxField  = 4 << 10 // bytes of one text of a profile
	MaxFields = 16      // declared fields
	MaxTexts  = 200     // texts; more texts add hardly any evidence
)

// With a score of In or more an account is in, with Out or less it is out. An account that is out
// is not judged again, an account that is in is. So out has to be the more certain one.
const (
	In  = 0.92
	Out = 0.03
	// Stay is for crawlers: an account that was in stays in until its score is below Stay.
	// Neighbours' verdicts change often, and to follow an account again costs more than to
	// continue.
	Stay = 0.8
)

// Profile is what an account says about itself. Every field may be empty.
type Profile struct {
	ID       string  `json:"id"` // a Key, or any name that is unique
	Name     string  `json:"name,omitempty"`
	Handle   string  `json:"handle,omitempty"`
	Bio      string  `json:"bio,omitempty"`
	Location string  `json:"location,omitempty"`
	TimeZone string  `json:"time_zone,omitempty"`
	Lang     string  `json:"lang,omitempty"` // language of the interface, BCP 47
	URL      string  `json:"url,omitempty"`
	Fields   []Field `json:"fields,omitempty"`
	Bot      bool    `json:"bot,omitempty"` // the account declares itself a bot
}

// Field is a name and a value that an account shows.
type Field struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Counts are the numbers of neighbours that were judged in and out.
type Counts struct {
	In  int `json:"in"`
	Out int `json:"out"`
}

// Edges counts the judged neighbours of an account by kind.
type Edges struct {
	Follows     Counts `json:"follows"`
	Followers   Counts `json:"followers"`
	Mentions    Counts `json:"mentions"`
	MentionedBy Counts `json:"mentioned_by"`
}

// Evidence is one fact for belonging (weight above 0, in nats) or against it.
type Evidence struct {
	// Kind is seed, exclusion, override, place, origin, language, name, word, zone, tag, domain,
	// hashtag, neighbours or machine.
	Kind   string  `json:"kind"`
	Text   string  `json:"text"` // what was found
	Weight float64 `json:"weight"`
}

// Verdict is whether an account belongs.
type Verdict struct {
	Verdict  string     `json:"verdict"` // in, out, undecided
	Score    float64    `json:"score"`   // 0 to 1: the probability that it belongs
	Evidence []Evidence `json:"evidence"`
	Ask      []Ask      `json:"ask,omitempty"` // if undecided: data worth fetching, best first
}

// The verdicts.
const (
	IsIn        = "in"
	IsOut       = "out"
	IsUndecided = "undecided"
)

// Judge weighs evidence for one community. It is immutable and so safe for concurrent use.
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

// New returns a judge. places and langs may be shared.
func New(c Community, places *geo.Gazetteer, langs *lang.Judge) (*Judge, error) {
	if places == nil || langs == nil {
		return nil, errors.New("community: no gazetteer, or no judge of languages")
	}
	j := &Judge{c: c, places: places, langs: langs, names: newWords(c.Names), aliens: newWords(c.NotNames),
		words:   newWords(c.Words),
		against: newWords(c.NotWords), born: newWords(c.Born), hashtags: newWords(c.Hashtags), zones: map[string]bool{}}
	for _, z := range c.Zones {
		j.zones[strings.ToLower(z)] = true
	}
	return j, nil
}

// Open is New with the gazetteer and the language judge that are embedded in the program.
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

// The weights, in nats. Each is about the logarithm of the ratio of frequencies inside and outside
// the community, where many outsiders look like members. One piece of evidence alone never decides.
const (
	prior          = -0.3
	weightPlace    = 1.8 // times confidence
	mostHome       = 2.6 // limit of place, zone and domain together: all show where somebody lives
	emigrant       = 0.4 // factor for them, if they contradict a language from enough texts
	weightBorn     = 4.0
	weightWriting  = 5.0 // the variety of a language that differs from the rivals'
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
	weightBot      = 9.0 // a declared bot
	weightMachine  = 8.0 // a machine, by its texts
	// Weights of neighbours, multiplied by the logarithm of the ratio of in to out.
	weightFollows   = 2.5
	weightFollowers = 2.0
	weightMentions  = 1.0
	mostNeighbours  = 6.0
	temper          = 0.85 // factor for the sum, because pieces of evidence overlap
)

// Judge weighs the known data of an account: its profile, some of its texts, and its neighbours'
// verdicts.
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
		texts = nil // no person wrote them, so they show no language
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

// listed returns the verdict of an account that the community's file lists.
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

// round rounds to six digits. More digits would be noise, and would differ between machines.
func round(x float64) float64 { return math.Round(x*1e6) / 1e6 }

// clip returns the first most bytes of s as valid UTF-8.
func clip(s string, most int) string {
	if len(s) > most {
		s = s[:most]
	}
	return strings.ToValidUTF8(s, "")
}
