package temporal

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/echo-node/echo-node/crawler/judge/period"
)

// World is a web of pages. Pages are made when they are requested, and are always the same.
type World struct {
	seed  uint64
	years []int            // main year of each page; 0 for a page without dates
	order []int            // pages with a year, by year
	first [maxYear + 2]int // where each year begins in order
}

// The years that pages are about.
const (
	minYear = 1850
	maxYear = 2013
)

// Written is the day on which every page was written.
var Written = time.Date(2013, 6, 1, 0, 0, 0, 0, time.UTC)

// Page is one page: what a crawler sees, and the truth.
type Page struct {
	Blocks []period.Block
	facts  [][]period.Span // the true dates of each dated block
}

// Relevant returns the truth: whether the page has a block with dates that are all in scope.
func (p *Page) Relevant(scope period.Scope) bool {
	return slices.ContainsFunc(p.facts, func(dates []period.Span) bool {
		return !slices.ContainsFunc(dates, func(d period.Span) bool { return !scope.Contains(d) })
	})
}

// Shares of the world. The share of pages without dates was measured on a Portuguese web of
// 2003. The years are more like those of an encyclopedia, as in the paper's crawls: many recent
// years, and many years of the world wars.
const (
	undatedPages  = 0.26 // pages without temporal information: 26.34 % in table 6.6
	recentPages   = 0.35 // of the dated pages: about the last 15 years or so
	warPages      = 0.20 // of the other dated pages: 1914 to 1949
	undatedBlocks = 0.25
	otherYear     = 0.25 // dated blocks about another year than the page's
	nearLinks     = 0.70 // links that lead to a nearby year
	namedLinks    = 0.12 // anchors that name the year of the target
	trapBlocks    = 0.15
	links         = 4 // in a block, at most
	navigation    = 6 // links at the top of a page
	popular       = 400
)

// NewWorld returns a World with that many pages.
func NewWorld(seed uint64, pages int) *World {
	w := &World{seed: seed, years: make([]int, pages)}
	rng := rand.New(rand.NewPCG(seed, 1))
	for i := range w.years {
		switch {
		case rng.Float64() < undatedPages:
		case rng.Float64() < recentPages:
			w.years[i] = maxYear - min(24, int(rng.ExpFloat64()*8))
		case rng.Float64() < warPages:
			w.years[i] = 1914 + rng.IntN(36)
		default:
			w.years[i] = minYear + rng.IntN(maxYear-minYear+1)
		}
		if w.years[i] > 0 {
			w.order = append(w.order, i)
		}
	}
	slices.SortStableFunc(w.order, func(a, b int) int { return w.years[a] - w.years[b] })
	at := 0
	for y := range w.first {
		for at < len(w.order) && w.years[w.order[at]] < y {
			at++
		}
		w.first[y] = at
	}
	return w
}

// Len returns the number of pages.
func (w *World) Len() int { return len(w.years) }

// Key returns the address of page i.
func Key(i int) string { return "http://mundo.test/p/" + strconv.Itoa(i) }

// Index returns the page with the address key.
func Index(key string) int {
	i, err := strconv.Atoi(strings.TrimPrefix(key, "http://mundo.test/p/"))
	if err != nil {
		return -1
	}
	return i
}

// Seeds returns n pages about a year of scope, as a search would find them.
func (w *World) Seeds(scope period.Scope, n int) []string {
	rng := rand.New(rand.NewPCG(w.seed, 2))
	var out []string
	for _, at := range rng.Perm(len(w.order)) {
		page := w.order[at]
		if y := w.years[page]; scope.Contains(yearSpan(y)) && len(out) < n && w.Page(page).Relevant(scope) {
			out = append(out, Key(page))
		}
	}
	return out
}

func yearSpan(y int) period.Span {
	return period.Span{Start: period.NewDay(y, 1, 1), End: period.NewDay(y, 12, 31)}
}

// Page makes page i.
func (w *World) Page(i int) *Page {
	m := maker{w: w, rng: rand.New(rand.NewPCG(w.seed, uint64(i)+1000)), page: &Page{}, year: w.years[i]}
	m.navigation()
	for range 5 + m.rng.IntN(12) {
		switch {
		case m.rng.Float64() < trapBlocks:
			m.add(m.trap(), nil)
		case m.year == 0 || m.rng.Float64() < undatedBlocks:
			m.add(m.filler(), nil)
		default:
			m.fact()
		}
	}
	return m.page
}

// maker writes one page.
type maker struct {
	w    *World
	rng  *rand.Rand
	page *Page
	year int
}

var fillers = [...]string{
	"A região é conhecida pela qualidade dos seus produtos e pela hospitalidade de quem lá vive",
	"O edifício foi ampliado e recebeu uma nova fachada voltada para o largo principal",
	"Os moradores queixaram-se do barulho e pediram à câmara que tomasse medidas",
	"A companhia manteve as carreiras regulares e comprou mais dois navios",
	"O autor deixou uma obra extensa, de que se destacam os romances e as crónicas",
	"Segundo os relatos, a população recebeu a notícia com surpresa e alguma alegria",
}

var traps = [...]string{
	"A sede fica na Rua 1.º de Maio, junto à Praça 5 de Outubro",
	"A freguesia tem 1943 habitantes e uma área de 1940 hectares",
	"Foi aprovada a norma ISO 2001:1999, com 1945 páginas",
	"O comboio parte do apeadeiro número 1942 e atravessa a Ponte 25 de Abril",
	"A segunda companhia e a terceira divisão ocuparam o marco geodésico a 1941 metros",
}

func (m *maker) filler() string { return fillers[m.rng.IntN(len(fillers))] }

func (m *maker) trap() string { return traps[m.rng.IntN(len(traps))] }

var months = [...]string{
	"janeiro", "fevereiro", "março", "abril", "maio", "junho",
	"julho", "agosto", "setembro", "outubro", "novembro", "dezembro",
}

// fact writes a block about one or two dates.
func (m *maker) fact() {
	year := m.year
	if m.rng.Float64() < otherYear {
		year = m.near(year, 12)
	}
	month, day := 1+m.rng.IntN(12), 1+m.rng.IntN(28)
	on := period.NewDay(year, month, day)
	dates := []period.Span{{Start: on, End: on}}
	text := ""
	switch m.rng.IntN(10) {
	case 0, 1, 2:
		dates[0] = yearSpan(year)
		text = fmt.Sprintf("Em %d, %s", year, lower(m.filler()))
	case 3, 4:
		text = fmt.Sprintf("A %d de %s de %d, %s", day, months[month-1], year, lower(m.filler()))
	case 5:
		dates[0] = period.Span{Start: period.NewDay(year, month, 1), End: period.NewDay(year, month, 31)}
		text = fmt.Sprintf("%s em %s de %d", m.filler(), months[month-1], year)
	case 6:
		dates = []period.Span{yearSpan(year), yearSpan(year + 1)}
		text = fmt.Sprintf("Em %d começaram as obras. No ano seguinte, %s", year, lower(m.filler()))
	case 7:
		text = fmt.Sprintf("%s (%02d/%02d/%d)", m.filler(), day, month, year)
	case 8:
		decade := year - year%10
		dates[0] = period.Span{Start: period.NewDay(decade, 1, 1), End: period.NewDay(decade+9, 12, 31)}
		text = fmt.Sprintf("Na década de %d, %s", decade, lower(m.filler()))
	default:
		to := year + m.rng.IntN(4)
		dates[0] = period.Span{Start: period.NewDay(year, 1, 1), End: period.NewDay(to, 12, 31)}
		text = fmt.Sprintf("Entre %d e %d, %s", year, to, lower(m.filler()))
	}
	m.add(text, dates)
	m.linksTo(year)
}

func lower(s string) string { return strings.ToLower(s[:1]) + s[1:] }

// near returns a year near y. The distance is distributed exponentially.
func (m *maker) near(y int, mean float64) int {
	by := int(math.Round(m.rng.ExpFloat64() * mean))
	if m.rng.IntN(2) == 0 {
		by = -by
	}
	return min(max(y+by, minYear), maxYear)
}

func (m *maker) add(text string, dates []period.Span) {
	m.page.Blocks = append(m.page.Blocks, period.Block{Text: text + "."})
	if dates != nil {
		m.page.facts = append(m.page.facts, dates)
		return
	}
	m.linksTo(m.year)
}

// linksTo puts links into the last block, which is about year (0: no year).
func (m *maker) linksTo(year int) {
	block := &m.page.Blocks[len(m.page.Blocks)-1]
	for range m.rng.IntN(links + 1) {
		to := m.target(year)
		anchor := "ver o artigo"
		if y := m.w.years[to]; y > 0 && m.rng.Float64() < namedLinks {
			anchor = fmt.Sprintf("os acontecimentos de %d", y)
		}
		block.Links = append(block.Links, period.Link{Key: Key(to), Anchor: anchor, At: m.rng.IntN(len(block.Text))})
	}
}

// target returns a page about a nearby year, or any page. Low numbers are popular.
func (m *maker) target(year int) int {
	if year > 0 && m.rng.Float64() < nearLinks {
		y := m.near(year, 1.5)
		if from, to := m.w.first[y], m.w.first[y+1]; from < to {
			return m.w.order[from+m.popular(to-from)]
		}
	}
	return m.popular(m.w.Len())
}

// popular returns a number from 0 to n-1, small ones more often.
func (m *maker) popular(n int) int {
	return min(n-1, int(float64(n)*math.Pow(m.rng.Float64(), 1.5)))
}

// navigation adds the menu at the top: popular pages, without dates.
func (m *maker) navigation() {
	block := period.Block{Text: "Início Notícias Arquivo Contactos"}
	for range navigation {
		block.Links = append(block.Links, period.Link{Key: Key(m.rng.IntN(min(popular, m.w.Len()))), Anchor: "menu"})
	}
	m.page.Blocks = append(m.page.Blocks, block)
}
