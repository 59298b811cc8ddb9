package period

import (
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Block is a paragraph, list item, table row or heading of a page.
type Block struct {
	Text    string
	Heading int // 1 to 6 for a heading, else 0
	Links   []Link
}

// Link is a link in a Block.
type Link struct {
	Key    string // what the link leads to, in the caller's words
	Anchor string
	At     int // byte of the block's text at which it stands
}

// Segment is a part of a page that talks about one set of dates.
type Segment struct {
	First, Last int    // blocks
	Dates       []Span // no vague ones; none if undated
	Inherited   bool   // the dates are those of the heading above
	Links       []Link
}

// SegmentOptions say how a page is cut.
type SegmentOptions struct {
	// Sentences cuts inside of paragraphs: at the end of a sentence, and between
	// two dates in one. Without it a block is one piece, as in the paper.
	Sentences bool
	// Inherit is how many undated pieces after a dated one belong to its
	// segment; 0 means all, as in the paper, negative none. The pieces below a
	// heading with a date belong to that date if they have none of their own.
	Inherit int
}

// piece is what is never cut.
type piece struct {
	block    int
	from, to int // bytes of the block's text
	dates    []Span
}

// Segments cuts a page. ref is the day of writing, see Tag. A piece without dates
// continues the segment before it, a new one begins when the set of dates changes.
func Segments(blocks []Block, ref time.Time, opts SegmentOptions) []Segment {
	texts := make([]string, len(blocks))
	for i, b := range blocks {
		texts[i] = b.Text
	}
	tagged := TagBlocks(texts, ref)
	c := segmenter{blocks: blocks, opts: opts}
	for i := range blocks {
		dated := slices.DeleteFunc(tagged[i], func(e Expression) bool { return !e.Dated || e.Kind == Vague || e.Own })
		if level := blocks[i].Heading; level > 0 {
			c.heading(level, Dated(dated))
		}
		c.links = slices.Clone(blocks[i].Links)
		slices.SortStableFunc(c.links, func(k, l Link) int { return k.At - l.At })
		for _, p := range pieces(blocks[i].Text, i, dated, opts.Sentences) {
			c.add(p)
		}
	}
	return c.out
}

type segmenter struct {
	blocks   []Block
	opts     SegmentOptions
	out      []Segment
	links    []Link    // of the block, from the present piece on
	undated  int       // pieces since the last date
	headings [7][]Span // dates of the headings above, by level
	level    int
}

// heading opens a section: deeper headings before it are over.
func (c *segmenter) heading(level int, dates []Span) {
	level = min(level, 6)
	for l := level; l < len(c.headings); l++ {
		c.headings[l] = nil
	}
	c.headings[level] = dates
	c.level = level
	c.undated = 1 << 30 // what is undated below does not continue what is above
}

// section is the dates of the innermost heading that has any.
func (c *segmenter) section() []Span {
	for l := c.level; l > 0; l-- {
		if len(c.headings[l]) > 0 {
			return c.headings[l]
		}
	}
	return nil
}

func (c *segmenter) add(p piece) {
	links := c.linksIn(p)
	dates, inherited := p.dates, false
	switch {
	case len(dates) > 0:
		c.undated = 0
	case len(c.section()) > 0:
		dates, inherited = c.section(), true
	default:
		if c.undated < 1<<30 {
			c.undated++
		}
		if n := len(c.out); n > 0 && c.continues() {
			c.out[n-1].Last = p.block
			c.out[n-1].Links = append(c.out[n-1].Links, links...)
			return
		}
	}
	if n := len(c.out); n > 0 && c.out[n-1].Inherited == inherited && slices.Equal(c.out[n-1].Dates, dates) {
		c.out[n-1].Last = p.block
		c.out[n-1].Links = append(c.out[n-1].Links, links...)
		return
	}
	c.out = append(c.out, Segment{First: p.block, Last: p.block, Dates: dates, Inherited: inherited, Links: links})
}

// continues says whether an undated piece belongs to the segment before it.
func (c *segmenter) continues() bool {
	if c.undated == 1<<30 {
		return false
	}
	return c.opts.Inherit == 0 || c.undated <= c.opts.Inherit
}

// linksIn takes the links that stand in p off those of its block.
func (c *segmenter) linksIn(p piece) []Link {
	n := 0
	for n < len(c.links) && (c.links[n].At < p.to || p.to == len(c.blocks[p.block].Text)) {
		n++
	}
	out := c.links[:n:n]
	c.links = c.links[n:]
	return out
}

// pieces cuts a block's text: one piece, or sentences and clauses of one date.
func pieces(text string, block int, dated []Expression, sentences bool) []piece {
	if !sentences {
		return []piece{{block, 0, len(text), distinct(Dated(dated))}}
	}
	var out []piece
	for _, s := range Sentences(text) {
		from := s[0]
		n := 0
		for n < len(dated) && dated[n].From < s[1] {
			n++
		}
		mine := dated[:n]
		dated = dated[n:]
		for i, e := range mine {
			to := s[1]
			if i+1 < len(mine) {
				to = clauseEnd(text, e.To, mine[i+1].From)
			}
			out = append(out, piece{block, from, to, []Span{e.Span}})
			from = to
		}
		if len(mine) == 0 {
			out = append(out, piece{block, s[0], s[1], nil})
		}
	}
	if len(out) == 0 {
		out = append(out, piece{block, 0, len(text), nil})
	}
	// Every byte belongs to a piece: a link may stand in the blanks between.
	out[0].from, out[len(out)-1].to = 0, len(text)
	for i := range out[1:] {
		out[i].to = out[i+1].from
	}
	return out
}

// clauseEnd is where the clause of one date ends before the next date begins: at
// the last comma, semicolon, colon, bracket or "e" between, else at the next date.
func clauseEnd(text string, from, to int) int {
	if from >= to {
		return to
	}
	between := text[from:to]
	best := -1
	for _, mark := range [...]string{", ", "; ", ": ", " (", " – ", " e ", " and ", " mas ", " but "} {
		best = max(best, strings.LastIndex(between, mark))
	}
	if best < 0 {
		return to
	}
	return from + best + 1
}

// distinct is dates without repetitions, in their order.
func distinct(dates []Span) []Span {
	var out []Span
	seen := make(map[Span]bool, len(dates))
	for _, d := range dates {
		if !seen[d] {
			seen[d] = true
			out = append(out, d)
		}
	}
	return out
}

// Sentences cuts text into sentences: [from, to) in bytes, white space between
// them belongs to none. A sentence ends at . ! ? or … before a blank and a letter
// that is not small, not behind an abbreviation or an initial, and at an empty line.
func Sentences(text string) [][2]int {
	var out [][2]int
	from := 0
	add := func(to int) {
		for from < to && isBlank(text[from]) {
			from++
		}
		end := to
		for end > from && isBlank(text[end-1]) {
			end--
		}
		if from < end {
			out = append(out, [2]int{from, end})
		}
		from = to
	}
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRuneInString(text[at:])
		at += size
		switch r {
		case '\n':
			if rest := strings.TrimLeft(text[at:], " \t\r"); strings.HasPrefix(rest, "\n") {
				add(at)
			}
		case '.', '!', '?', '…':
			for at < len(text) && strings.IndexByte(".!?\"')", text[at]) >= 0 {
				at++
			}
			if endsSentence(text, from, at, r) {
				add(at)
			}
		}
	}
	add(len(text))
	return out
}

func isBlank(b byte) bool { return b == ' ' || b == '\n' || b == '\t' || b == '\r' }

// endsSentence looks at what stands around the mark that ends at.
func endsSentence(text string, from, at int, mark rune) bool {
	if at >= len(text) || !isBlank(text[at]) {
		return false
	}
	next, _ := utf8.DecodeRuneInString(strings.TrimLeft(text[at:], " \n\t\r\"'«“(–-"))
	if unicode.IsLower(next) {
		return false
	}
	if mark != '.' {
		return true
	}
	word := strings.TrimRight(text[from:at], ".\"')")
	word = word[strings.LastIndexAny(word, " \n\t(\"")+1:]
	if utf8.RuneCountInString(word) == 1 && !unicode.IsDigit(rune(word[0])) {
		return false // an initial
	}
	switch strings.ToLower(word) {
	case "sr", "sra", "dr", "dra", "prof", "eng", "av", "art", "séc", "sec", "pág", "pag", "vol", "cap", "fig",
		"a.c", "d.c", "p.ex", "etc", "mr", "mrs", "ms", "st", "jr", "no", "nº", "n.º", "ca", "d", "s", "sto", "sta",
		"jan", "fev", "mar", "abr", "jun", "jul", "ago", "set", "out", "nov", "dez", "feb", "apr", "aug", "sept", "oct",
		"dec":
		return false
	}
	return true
}
