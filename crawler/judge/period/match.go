package period

// capture is one class that a pattern matched, in order.
type capture struct {
	class string
	value int
	at    int // token
}

// mention is a match before it is resolved. Fields that do not apply are zero.
type mention struct {
	from, to int // indices of tokens
	act      *action
	caps     []capture

	year       int
	hasYear    bool
	month, day int
	dir        int  // -1 last, 0 this, 1 next, if hasDir
	hasDir     bool //
	anchorText bool
	yearOf     *mention // "em maio do ano passado"
	other      *mention // the end of an interval
	skip       bool     // merged into another mention
}

// cap returns the value of the nth capture of one of classes, and whether there is one.
func (m *mention) cap(n int, classes ...string) (int, bool) {
	for _, c := range m.caps {
		for _, class := range classes {
			if c.class != class {
				continue
			}
			if n == 0 {
				return c.value, true
			}
			n--
		}
	}
	return 0, false
}

// matcher finds the mentions of one text.
type matcher struct {
	rules  *ruleset
	text   string
	tokens []token
	caps   []capture // captures of the current path
	kept   []capture // captures of the matches
	found  []mention // matches at one place, shorter ones first
	// swallow is set when the match rejected last is a name or an amount. Then no part of it is
	// about time either.
	swallow bool

	technical      bool // the text is about programs
	taken, refused int  // the last lone number that was a year, and the last that was not; -1 none
}

// mentions returns everything that a rule matches and no guard rejects, in order and without
// overlap. At each place it takes the longest match. manual reports that text is technical.
func (r *ruleset) mentions(text string) (tokens []token, found []mention, manual bool) {
	m := matcher{rules: r, text: text, tokens: r.tokenize(text), taken: -1, refused: -1}
	m.technical = technical(text, m.tokens)
	var out []mention
	for i := 0; i < len(m.tokens); {
		t := &m.tokens[i]
		m.found, m.caps = m.found[:0], m.caps[:0]
		switch {
		case t.is(upper):
			m.walk(r.root, i, i)
		case t.number >= 0:
			m.walk(r.numbers, i, i)
		case t.term != nil:
			m.begin(t.term, i)
		}
		next := i + 1
		for k := len(m.found) - 1; k >= 0; k-- {
			mention := &m.found[k]
			m.swallow = false
			if m.accept(mention) {
				out = append(out, *mention)
			} else if !m.swallow {
				continue
			}
			next = mention.to
			break
		}
		i = next
	}
	return m.tokens, m.merge(out), m.technical
}

// begin is walk from the root, for the token at i, which has term t and is no number.
func (m *matcher) begin(t *term, i int) {
	glue := m.tokens[i].is(glued)
	for _, s := range t.first {
		switch {
		case s.glued && !glue:
		case s.class == "":
			m.walk(s.to, i, i+1)
		default:
			m.caps = append(m.caps, capture{s.class, s.value, i})
			m.walk(s.to, i, i+1)
			m.caps = m.caps[:len(m.caps)-1]
		}
	}
}

// walk goes down the trie from n with the token at i. from is the first token of the match.
func (m *matcher) walk(n *node, from, i int) {
	if n.action != nil {
		m.add(mention{from: from, to: i, act: n.action})
	}
	if i >= len(m.tokens) || i > from && m.tokens[i].is(breaks) {
		return
	}
	t := &m.tokens[i]
	if t.term != nil {
		if to := n.words[t.term]; to != nil {
			m.walk(to, from, i+1)
		}
		if t.is(glued) {
			if to := n.glued[t.term]; to != nil {
				m.walk(to, from, i+1)
			}
		}
	}
	for _, e := range n.classes {
		if e.glued && !t.is(glued) {
			continue
		}
		if v, ok := e.value(m.text, t); ok {
			m.caps = append(m.caps, capture{e.class, v, i})
			m.walk(e.to, from, i+1)
			m.caps = m.caps[:len(m.caps)-1]
		}
	}
}

// add keeps a match, in order of length. Of two equal ones only the first is tried first.
func (m *matcher) add(found mention) {
	at := len(m.found)
	for at > 0 && m.found[at-1].to >= found.to {
		at--
	}
	m.kept = append(m.kept, m.caps...)
	found.caps = m.kept[len(m.kept)-len(m.caps) : len(m.kept) : len(m.kept)]
	m.found = append(m.found, mention{})
	copy(m.found[at+1:], m.found[at:])
	m.found[at] = found
}

// accept reads the captures of a match, adds a year that follows it, and calls the guards.
func (m *matcher) accept(x *mention) bool {
	x.read()
	if x.lacksYear() {
		m.takeYear(x)
	}
	return m.guard(x)
}

// read sets the fields of x from its captures and arguments.
func (x *mention) read() {
	x.anchorText = x.act.anchorText
	x.dir, x.hasDir = x.act.dir, x.act.hasDir
	x.month, _ = x.cap(0, "month", "Month", "mayMonth", "mon", "m", "m2")
	x.day, _ = x.cap(0, "d", "o")
	if x.act.day > 0 {
		x.day = x.act.day
	}
	switch x.act.name {
	case "date", "numeric", "days", "days3", "year", "datetime":
		x.year, x.hasYear = x.cap(0, "Y")
		if yy, ok := x.cap(0, "yy"); ok {
			x.year, x.hasYear = fullYear(yy), true
		}
	}
	if x.act.name == "numeric" && x.month > 12 && x.day <= 12 {
		x.month, x.day = x.day, x.month // 06/15/2010
	}
}

// fullYear returns the year that two digits mean.
func fullYear(yy int) int {
	if yy < 30 {
		return 2000 + yy
	}
	return 1900 + yy
}

// lacksYear reports whether a year after x belongs to it.
func (x *mention) lacksYear() bool {
	switch x.act.name {
	case "date", "days", "days3", "holiday", "season", "quarter", "half":
		return !x.hasYear && !x.hasDir && !x.anchorText
	}
	return false
}

// takeYear looks for a year after x: 2010, de 2010, do ano de 2010, of 2010, ", 2010", /2010, de
// 74, '74.
func (m *matcher) takeYear(x *mention) {
	i, of := x.to, false
	for i < len(m.tokens) && !m.tokens[i].is(breaks) {
		t := &m.tokens[i]
		if v, ok := numYear.value(m.text, t); ok {
			if m.glueAfter(i+1) && !m.counted(i) {
				x.year, x.hasYear, x.to = v, true, i+1
			}
			return
		}
		if v, ok := numYear2.value(m.text, t); ok && of && !m.counted(i) && m.glueAfter(i+1) &&
			(x.day+x.month > 0 || x.act.name == "season") {
			x.year, x.hasYear, x.to = fullYear(v), true, i+1
			return
		}
		switch {
		case t.has("ofs") || t.word() == "'":
			of = true
		case t.word() == "," || t.word() == "." || t.word() == "/" && t.is(glued) || t.word() == "-" && t.is(glued):
		case t.word() == "ano" && of:
		default:
			return
		}
		if i++; i > x.to+3 {
			return
		}
	}
}

// merge joins mentions that are one expression.
func (m *matcher) merge(list []mention) []mention {
	for i := range list {
		x := &list[i]
		if x.skip || i+1 == len(list) || x.other != nil {
			continue
		}
		next := &list[i+1]
		switch {
		case x.act.name == "weekday" && !x.hasDir && (next.act.name == "date" || next.act.name == "numeric") &&
			next.day > 0 && m.only(x.to, next.from, ",", "dia", "the"):
			next.from, x.skip = x.from, true
		case x.act.name == "decade" && next.act.name == "century" && m.only(x.to, next.from, "de", "do", "of", "the"):
			if n, ok := next.cap(0, "rom", "o", "ordw", "n"); ok {
				x.year, x.hasYear = (n-1)*100, true
			} // for "do século passado" a decade of two digits is right anyway
			x.to, next.skip = next.to, true
		case x.lacksYear() && (x.month > 0 || x.act.name == "season") && next.isUnit(unitYear) &&
			m.only(x.to, next.from, "de", "do", "of", "em", "in"):
			of := *next // a copy, because next moves when the list is compacted
			x.yearOf, x.to, next.skip = &of, next.to, true
		}
	}
	kept := list[:0]
	for _, x := range list {
		if !x.skip {
			kept = append(kept, x)
		}
	}
	return m.intervals(kept)
}

func (x *mention) isUnit(unit int) bool {
	u, _ := x.cap(0, "unit")
	return x.act.name == "unit" && u == unit
}

// only reports whether all tokens from..to are among words.
func (m *matcher) only(from, to int, words ...string) bool {
	for _, t := range m.tokens[from:to] {
		ok := false
		for _, w := range words {
			ok = ok || t.word() == w
		}
		if !ok || t.is(breaks) {
			return false
		}
	}
	return from == to || !m.tokens[to].is(breaks)
}

// intervals joins two dates with a connector between them: de A a B, entre A e B, A - B.
func (m *matcher) intervals(list []mention) []mention {
	out := list[:0]
	for i := 0; i < len(list); i++ {
		x := list[i]
		if i+1 < len(list) && x.boundary() && list[i+1].boundary() && m.connected(&x, &list[i+1]) {
			end := list[i+1]
			x.other, x.to = &end, end.to
			x.complete()
			i++
		}
		out = append(out, x)
	}
	return out
}

// boundary reports whether x can be one end of an interval.
func (x *mention) boundary() bool {
	switch x.act.name {
	case "date", "numeric", "year", "yearbc", "yearad", "century", "decade", "season", "quarter", "half", "holiday",
		"weekday", "offset":
		return x.other == nil
	}
	return false
}

// connected reports whether the words between x and next, and the word before x, make an interval.
// The word before x becomes part of x.
func (m *matcher) connected(x, next *mention) bool {
	if next.from-x.to < 1 || next.from-x.to > 3 || m.tokens[next.from].is(breaks) {
		return false
	}
	both, until := false, false
	for i := x.to; i < next.from; i++ {
		switch t := &m.tokens[i]; {
		case t.is(breaks):
			return false
		case t.word() == "e" || t.word() == "and":
			both = true
		case t.word() == "a" || t.word() == "ao" || t.word() == "ate" || t.word() == "to" || t.word() == "until" ||
			t.word() == "till" || t.word() == "through" || t.has("dash"):
			until = true
		case i > x.to && (t.word() == "o" || t.word() == "os" || t.word() == "as" || t.word() == "the" ||
			t.word() == "dia"):
		default:
			return false
		}
	}
	at := x.from - 1
	for at > 0 && m.tokens[at].has("cue") && (m.tokens[at].word() == "o" || m.tokens[at].word() == "os" ||
		m.tokens[at].word() == "a" || m.tokens[at].word() == "as" || m.tokens[at].word() == "the") {
		at--
	}
	word := ""
	if at >= 0 {
		word = m.tokens[at].word()
	}
	switch {
	case word == "entre" || word == "between":
		if both {
			x.from = at
		}
		return both
	case word == "de" || word == "desde" || word == "from" || word == "do" || word == "da":
		if until {
			x.from = at
		}
	}
	return until
}

// complete gives each end of an interval what only the other end states.
func (x *mention) complete() {
	y := x.other
	switch {
	case x.month > 0 && !x.hasYear && y.hasYear:
		x.year, x.hasYear = y.year, true
		if x.month > y.month && y.month > 0 {
			x.year--
		}
	case y.month > 0 && !y.hasYear && x.hasYear:
		y.year, y.hasYear = x.year, true
	}
	if x.month > 0 && y.month > 0 && y.yearOf != nil {
		x.yearOf = y.yearOf
	}
}
