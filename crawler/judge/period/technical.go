package period

// This file handles numbers of four digits that are not years. Manuals are full of them. Footers
// have copyright years, which the page does not talk about.

const (
	techShare  = 60   // in a text about programs, one of techShare words is typical of them
	techLeast  = 3    // and the text has at least techLeast such words
	firstAsian = 0xE3 // the first byte of Chinese, Japanese and Korean letters
	techYears  = 1800
	techBefore = 2050 // years outside these two need more evidence in such texts
	noticeSize = 12   // tokens of a copyright notice before its year
)

// technical reports whether tokens are of a text about programs. It is also true for a text whose
// words the rules do not know, because there the words around a number show nothing.
func technical(text string, tokens []token) bool {
	words, tech, strange := 0, 0, 0
	for i := range tokens {
		t := &tokens[i]
		if !t.is(letters) {
			continue
		}
		words++
		if t.term != nil && t.term.tech {
			tech++
		}
		if text[t.from] >= firstAsian {
			strange++
		}
	}
	return tech >= techLeast && tech*techShare >= words || 2*strange > words
}

// roundSize reports whether v is more often a size or a round limit than a year.
func roundSize(v int) bool {
	switch v {
	case 1000, 1023, 1024, 1025, 2047, 2048, 2049:
		return true
	}
	return false
}

// notice reports whether x is a copyright year: Copyright (c) 2001 and 2003, © A. Author 1999.
func (m *matcher) notice(x *mention) bool {
	if next := m.after(x.to); next != nil && next.word() == "©" {
		return true
	}
	for at := x.from; at > 0 && x.from-at < noticeSize && !m.tokens[at].is(breaks); {
		line := m.tokens[at].is(newline)
		at--
		t := &m.tokens[at]
		switch {
		case t.has("notice"), t.word() == "c" && at > 0 && m.tokens[at-1].word() == "(":
			return true
		case line:
			return false
		case t.number >= 0, t.is(capital), t.has("dash"):
			continue
		}
		switch t.word() {
		case ",", ".", "(", ")", "&", "/", ":", "by", "and", "e", "y", "et", "und":
		default:
			return false
		}
	}
	return false
}

// listed reports whether x continues a list of numbers: RFC 2045, 2046 and 2047. last is the number
// before it; x is of the same kind.
func (m *matcher) listed(x *mention, last int) bool {
	at := x.from - 1
	if at < 1 || m.tokens[x.from].is(breaks) {
		return false
	}
	switch t := &m.tokens[at]; {
	case t.word() == ",", t.word() == "and", t.word() == "or", t.word() == "e", t.word() == "ou", t.word() == "/",
		t.word() == "to", t.word() == "a", t.has("dash"):
		return at-1 == last
	}
	return at == last // neighbouring cells of a table
}

// yearOfManual reports whether four digits are a year in a text about programs. There, the text
// must mark them as one.
func (m *matcher) yearOfManual(x *mention) bool {
	prev, next := m.before(x.from), m.after(x.to)
	if next != nil && next.is(newline) {
		next = nil
	}
	noun := next != nil && next.is(letters) && !next.is(capital) && !next.has("cue") && !next.has("ofs")
	if m.counted(x.to-1) || noun && next.is(pluralS) {
		return false
	}
	strong := m.prev(x.from, "yearcue")
	if x.year < techYears || x.year > techBefore || x.year == 2000 {
		round := x.year < techYears && x.year%50 == 0
		return strong && m.sinceCue(x.from) && !round && !noun
	}
	switch {
	case strong, m.listed(x, m.taken):
		return true
	case prev == nil:
		return false
	case prev.has("ofs"):
		return x.from > 1 && m.tokens[x.from-2].word() == "as" // as of 2015
	case prev.word() == "the":
		return noun // the 2016 version
	}
	switch { // at the end of a reference: (Knuth, 1997), Springer. 2001.
	case next == nil:
		return prev.word() == ","
	case next.word() == ")" || next.word() == "]":
		return prev.word() == "(" || prev.word() == "[" || prev.word() == "," || prev.is(capital)
	case next.word() == "." || next.word() == "," || next.word() == ";":
		return (prev.word() == "," || prev.word() == "." || prev.is(capital)) && !m.among(x)
	}
	return false
}

// among reports whether x is in a list of numbers: 10, 1950, 20.
func (m *matcher) among(x *mention) bool {
	return x.from > 1 && m.tokens[x.from-2].number >= 0 && x.to+1 < len(m.tokens) && m.tokens[x.to+1].number >= 0
}

// sinceCue is directCue that also accepts em.
func (m *matcher) sinceCue(at int) bool {
	prev := m.before(at)
	return m.directCue(at) || prev != nil && prev.word() == "em"
}

// numbered reports whether x is the number of a section or of a version: 4.2.19, 7-8-10. A date in
// that form has two digits for day and month, and does not occur in manuals.
func (m *matcher) numbered(x *mention) bool {
	if _, short := x.cap(0, "yy"); !short || x.act.name != "numeric" || m.tokens[x.from+1].word() == "/" {
		return false
	}
	return m.technical || m.tokens[x.from].digits < 2 || m.tokens[x.from+2].digits < 2
}

// inAddress reports whether x is in an address or a path: www.abril.org, Indian/Christmas.
func (m *matcher) inAddress(x *mention) bool {
	if t := &m.tokens[x.from]; t.is(letters) && t.is(glued) && x.from > 0 {
		switch m.tokens[x.from-1].word() {
		case "/", "_", "@":
			return true
		case ".":
			return x.from > 1 && m.tokens[x.from-1].is(glued) && m.tokens[x.from-2].is(letters)
		}
	}
	next := m.after(x.to)
	if next == nil || !m.tokens[x.to-1].is(letters) || !next.is(glued) {
		return false
	}
	after := m.after(x.to + 1)
	return next.word() == "_" || next.word() == "@" || next.word() == "." && after != nil && after.is(glued) &&
		after.is(letters)
}

// sample reports whether x is an example of how a date is written: "2003-02-10", e.g. 2003-02-10,
// the style 10 May 2003.
func (m *matcher) sample(x *mention) bool {
	near := 4 // tokens
	switch x.act.name {
	case "date", "numeric", "datetime":
	case "year":
		near = 2
	default:
		return false
	}
	if x.from == 0 || m.tokens[x.from].is(breaks) {
		return false
	}
	prev := &m.tokens[x.from-1]
	if near > 2 && m.tokens[x.from].is(glued) && (prev.word() == "'" || prev.word() == "\"" || prev.word() == "“") {
		return true
	}
	for at := x.from - 1; at >= 0 && x.from-at <= near && !m.tokens[at+1].is(newline); at-- {
		if t := &m.tokens[at]; t.has("eg") || t.word() == "g" && at > 0 && m.tokens[at-1].is(glued) {
			return true
		}
	}
	return false
}

// own reports whether the date at from is the date of a change of the page: "Last updated on ...".
func own(tokens []token, from int) bool {
	const before, between = 6, 3 // tokens
	at, n := from-1, 0
	for ; at > 0 && n < between && !tokens[at+1].is(breaks) && (tokens[at].has("cue") || tokens[at].word() == ":" ||
		tokens[at].has("ofs")); at-- {
		n++
	}
	if at < 0 || !tokens[at].has("changed") {
		return false
	}
	for n := range before {
		if at-n < 0 || tokens[at-n].has("last") {
			return at >= n
		}
	}
	return false
}

// bounds reports whether x is a range of numbers in a text about programs: 1000-2000.
func bounds(x *mention) bool {
	if x.act.name != "years" {
		return false
	}
	from, _ := x.cap(0, "Y")
	to, _ := x.cap(1, "Y")
	return from < techYears || to > techBefore || from%100 == 0 && to%100 == 0
}
