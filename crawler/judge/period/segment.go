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
	Heading int // 1 to 6 for a heading, otherwise 0
	Links   []Link
}

// Link is a link in a Block.
type Link struct {
	Key    string // the target of the link, in the caller's form
	Anchor string
	At     int // byte offset of the link in the block's text
}

// Segment is a part of a page that talks about one set of dates.
type Segment struct {
	First, Last int    // indices of blocks
	Dates       []Span // without vague dates; none if undated
	Inherited   bool   // the dates are those of the heading above
	Links       []Link
}

// SegmentOptions define how a page is cut.
type SegmentOptions struct {
	// Sentences also cuts inside paragraphs: at the end of a sentence, and between two dates in a
	// sentence. Without it a block is one piece, as in the paper.
	Sentences bool
	// Inherit is the number of undated pieces after a dated one that belong to its segment. 0 means
	// all, as in the paper, negative means none. Pieces below a heading with a date belong to that
	// date if they have none of their own.
	Inherit int
}

// piece is a part of a block that is never cut.
type piece struct {
	block    int
	from, to int // byte offsets in the block's text
	dates    []Span
}

// Segments cuts a page. ref is the day of writing, see Tag. A piece without dates continues the
// segment before it. A new segment begins when the set of dates changes.
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

// segmenter is the state of Segments.
type segmenter struct {
	blocks   []Block
	opts     SegmentOptions
	out      []Segment
	links    []Link    // links of the block, from the current piece on
	undated  int       // number of pieces since the last date
	headings [7][]Span // dates of the headings above, by level
	level    int
}

// heading opens a section: it ends the sections of deeper headings.
func (c *segmenter) heading(level int, dates []Span) {
	level = min(level, 6)
	for l := level; l < len(c.headings); l++ {
		c.headings[l] = nil
	}
	c.headings[level] = dates
	c.level = level
	c.undated = 1 << 30 // undated text below does not continue the segment above
}

// section returns the dates of the innermost heading that has any.
func (c *segmenter) section() []Span {
	for l := c.level; l > 0; l-- {
		if len(c.headings[l]) > 0 {
			return c.headings[l]
		}
	}
	return nil
}

// add adds a piece to the last segment or begins a new one.
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

// continues reports whether an undated piece belongs to the segment before it.
func (c *segmenter) continues() bool {
	if c.undated == 1<<30 {
		return false
	}
	return c.opts.Inherit == 0 || c.undated <= c.opts.Inherit
}

// linksIn removes and returns the links of the block that are in p.
func (c *segmenter) linksIn(p piece) []Link {
	n := 0
	for n < len(c.links) && (c.links[n].At < p.to || p.to == len(c.blocks[p.block].Text)) {
		n++
	}
	out := c.links[:n:n]
	c.links = c.links[n:]
	return out
}

// pieces cuts a block's text: into one piece, or into sentences and clauses with one date each.
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
	// Every byte belongs to a piece, because a link may be in the spaces between.
	out[0].from, out[len(out)-1].to = 0, len(text)
	for i := range out[1:] {
		out[i].to = out[i+1].from
	}
	return out
}

// clauseEnd returns where the clause of one date ends before the next date begins: at the last
// comma, semicolon, colon, bracket or conjunction between them, otherwise at the next date.
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

// distinct returns dates without repetitions, in their order.
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

// Sentences cuts text into sentences: [from, to) in bytes. White space between sentences belongs to
// none. A sentence ends at an empty line. It also ends at . ! ? or … before a space and anything
// but a small letter, unless the point belongs to an abbreviation or an initial.
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

// endsSentence reports whether the mark that ends at byte at ends a sentence.
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
