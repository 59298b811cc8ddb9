package communitytest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"golang.org/x/text/runes"
	"golang.org/x/text/transform"
	"golang.org/x/text/unicode/norm"
	"unicode"

	"github.com/echo-node/echo-node/crawler/judge/community"
)

// Options of New.
type Options struct {
	Seed   uint64
	People int  // default 4000
	Mirror bool // the community is Brazil's, and Portugal is the rival country
}

// The classes of people. Members are Home and Abroad.
const (
	Home     = "home"     // a member in the community's country
	Abroad   = "abroad"   // a member elsewhere
	Guest    = "guest"    // from the rival country, in the community's country
	Rival    = "rival"    // from the rival country, in that country
	Stranger = "stranger" // from a third country; some live in the community's country
	Machine  = "machine"
)

// Person is one account and the truth about it.
type Person struct {
	Class     string
	Member    bool
	Profile   community.Profile
	Texts     []string // everything that the account wrote
	Follows   []int    // indexes of People
	Followers []int
	Mentions  []int // some of Follows
}

// World is all simulated people.
type World struct{ People []Person }

// maker is the state of New.
type maker struct {
	*rand.Rand
	home, rival nation
	others      []nation
	slots       map[string][]string
}

// New returns a World. The same options give the same World.
func New(o Options) *World {
	if o.People <= 0 {
		o.People = 4000
	}
	m := &maker{Rand: rand.New(rand.NewPCG(o.Seed, 11)), home: portugal(), rival: brazil(), others: strangers(),
		slots: slots()}
	if o.Mirror {
		m.home, m.rival = m.rival, m.home
	}
	w := &World{People: make([]Person, o.People)}
	for i := range w.People {
		w.People[i] = m.person(i)
	}
	m.connect(w.People)
	return w
}

func (m *maker) chance(p float64) bool { return m.Float64() < p }

func pick[T any](m *maker, list []T) T { return list[m.IntN(len(list))] }

// person generates one person: class, profile, texts.
func (m *maker) person(i int) Person {
	var p Person
	from, lives := m.home, m.home
	switch x := m.Float64(); {
	case x < 0.40:
		p.Class = Home
	case x < 0.48:
		p.Class, lives = Abroad, pick(m, append(m.others, m.rival))
	case x < 0.57:
		p.Class, from = Guest, m.rival
	case x < 0.78:
		p.Class, from, lives = Rival, m.rival, m.rival
	case x < 0.95:
		p.Class, from = Stranger, pick(m, m.others)
		if lives = from; m.chance(0.25) {
			lives = m.home
		}
	default:
		p.Class = Machine
		if lives = pick(m, []nation{m.home, m.home, m.rival, m.others[0]}); true {
			from = lives
		}
	}
	p.Member = p.Class == Home || p.Class == Abroad
	p.Profile = community.Profile{ID: fmt.Sprintf("p%d", i), Handle: fmt.Sprintf("u%d", i)}
	if empty := m.chance(0.18); !empty {
		m.describe(&p, from, lives)
	} else if m.chance(0.5) {
		p.Profile.Name = pick(m, from.given)
	}
	if p.Class == Machine {
		m.program(&p, from)
	} else {
		m.write(&p, from, lives)
	}
	return p
}

// describe fills the profile, with gaps, jokes and false statements.
func (m *maker) describe(p *Person, from, lives nation) {
	x := &p.Profile
	x.Name = pick(m, from.given)
	if m.chance(0.7) {
		x.Name += " " + pick(m, from.family)
	}
	switch y := m.Float64(); {
	case y < 0.28:
	case y < 0.36:
		x.Location = pick(m, []string{"na lua", "por aí", "algures", "everywhere", "internet", "home", "planeta Terra",
			"🌍"})
	case y < 0.39:
		x.Location = pick(m, pick(m, append(m.others, m.home, m.rival)).towns)
	case y < 0.46 && from.code != lives.code:
		x.Location = pick(m, from.towns) + " → " + pick(m, lives.towns)
	default:
		x.Location = pick(m, lives.towns)
	}
	if m.chance(0.6) {
		x.Bio = strings.ReplaceAll(pick(m, from.bio), "{town}", pick(m, from.towns))
		if strings.HasPrefix(x.Bio, "vivo em") || strings.HasPrefix(x.Bio, "moro em") ||
			strings.HasPrefix(x.Bio, "Living") {
			x.Bio = strings.ReplaceAll(x.Bio[:strings.LastIndexByte(x.Bio, ' ')+1], "{town}", "") + pick(m, lives.towns)
		}
	}
	if m.chance(0.45) {
		x.TimeZone = pick(m, lives.zones)
	}
	if m.chance(0.5) {
		x.Lang = from.tag
		if m.chance(0.35) {
			x.Lang = pick(m, []string{"en", strings.Split(from.tag, "-")[0], lives.tag})
		}
	}
	if m.chance(0.12) {
		x.URL = "https://www.sitio" + lives.domain + "/"
	}
	if p.Class == Abroad && m.chance(0.3) {
		x.Fields = []community.Field{{Name: "Naturalidade", Value: pick(m, from.towns)}}
	}
}

// write generates the texts of a person. Some people write hardly any.
func (m *maker) write(p *Person, from, lives nation) {
	n := 10 + m.IntN(60)
	switch x := m.Float64(); {
	case x < 0.06:
		n = 0
	case x < 0.14:
		n = 1 + m.IntN(5)
	}
	away := 0.05 // share of texts in another language
	if from.code != lives.code {
		away = 0.15 + 0.4*m.Float64()
	}
	other := lives
	if other.code == from.code || m.chance(0.4) {
		other = m.others[0]
	}
	same := strings.HasPrefix(from.tag, "pt")
	plain := m.chance(0.3)
	for range n {
		list := from.texts
		switch {
		// Nobody writes both varieties.
		case m.chance(away) && !(same && strings.HasPrefix(other.tag, "pt")):
			list = other.texts
		case same && m.chance(0.3):
			list = neutral()
		}
		t := m.fill(pick(m, list))
		if m.chance(0.35) {
			t += ". " + m.fill(pick(m, list))
		}
		if plain {
			t = unaccented(t)
		}
		if m.chance(0.15) {
			t = strings.ToLower(t) + pick(m, []string{" lol", "!!!", " 😂", " <3", "..."})
		}
		p.Texts = append(p.Texts, t)
	}
}

// program generates the texts of a machine. Half of the machines declare themselves, and all repeat
// themselves.
func (m *maker) program(p *Person, from nation) {
	p.Profile.Bot = m.chance(0.5)
	line := pick(m, []string{"Temperatura em {town}: {n} graus, vento {n} km/h",
		"Ganhe dinheiro em casa, saiba como em https://exemplo.test/{n}",
		"Now playing on radio {town}: track {n}", "Últimas notícias de {town}: leia mais em https://exemplo.test/{n}"})
	line = strings.ReplaceAll(line, "{town}", pick(m, from.towns))
	for range 15 + m.IntN(40) {
		p.Texts = append(p.Texts, m.fill(line))
	}
}

// fill replaces each {slot} of text by a random text of the slot.
func (m *maker) fill(text string) string {
	for {
		from := strings.IndexByte(text, '{')
		if from < 0 {
			return text
		}
		to := from + strings.IndexByte(text[from:], '}')
		text = text[:from] + pick(m, m.slots[text[from+1:to]]) + text[to+1:]
	}
}

func unaccented(s string) string {
	out, _, err := transform.String(transform.Chain(norm.NFD, runes.Remove(runes.In(unicode.Mn)), norm.NFC), s)
	if err != nil {
		return s // cannot happen: every rune has a decomposition
	}
	return out
}

// connect lets people follow each other. 79 % of those that a member at home follows are members
// (Oliveira 2011, about mentions). The other shares are assumptions.
func (m *maker) connect(people []Person) {
	byClass := map[string][]int{}
	for i, p := range people {
		byClass[p.Class] = append(byClass[p.Class], i)
	}
	mix := map[string][]float64{ // shares of home, abroad, guest, rival, stranger, machine
		Home:     {0.70, 0.09, 0.03, 0.06, 0.09, 0.03},
		Abroad:   {0.48, 0.16, 0.02, 0.06, 0.26, 0.02},
		Guest:    {0.30, 0.04, 0.24, 0.31, 0.09, 0.02},
		Rival:    {0.05, 0.02, 0.10, 0.70, 0.11, 0.02},
		Stranger: {0.12, 0.04, 0.02, 0.05, 0.75, 0.02},
		Machine:  {0.17, 0.17, 0.17, 0.17, 0.16, 0.16},
	}
	classes := []string{Home, Abroad, Guest, Rival, Stranger, Machine}
	for i := range people {
		p := &people[i]
		n := 4 + m.IntN(40)
		if m.chance(0.05) {
			n = 0
		}
		for range n {
			x, class := m.Float64(), 0
			for x -= mix[p.Class][0]; x > 0 && class < len(classes)-1; x -= mix[p.Class][class] {
				class++
			}
			list := byClass[classes[class]]
			if len(list) == 0 {
				continue
			}
			to := pick(m, list)
			if to == i || slices.Contains(p.Follows, to) {
				continue
			}
			p.Follows = append(p.Follows, to)
			people[to].Followers = append(people[to].Followers, i)
			if m.chance(0.3) {
				p.Mentions = append(p.Mentions, to)
			}
		}
	}
}
