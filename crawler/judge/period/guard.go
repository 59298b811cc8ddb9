package period

import "strings"

// guard reports whether the words around x allow it to be about time.
func (m *matcher) guard(x *mention) bool {
	if m.calendarLike(x) && m.named(x) {
		m.swallow = true
		return false
	}
	if !m.numberGlue(x) || !m.monthForm(x) || !m.cued(x) {
		return false
	}
	if m.technical && m.sample(x) {
		m.swallow = true
		return false
	}
	if m.numbered(x) || m.inAddress(x) || m.technical && bounds(x) {
		return false
	}
	if x.act.yearMust && !x.hasYear {
		return false
	}
	if x.act.lower && m.tokens[x.from].is(capital) && x.from > 0 && !m.sentenceStart(x.from) {
		return false
	}
	if x.act.alone && m.goesOn(x.to) {
		return false
	}
	switch x.act.name {
	case "date", "numeric", "days", "days3", "holiday", "datetime":
		return m.calendar(x)
	case "year":
		if ok := m.yearAlone(x) && !m.notice(x); ok {
			m.taken = x.to - 1
		} else {
			m.refused = x.to - 1
			return false
		}
	case "years":
		return !m.prev(x.from, "counting") && yearsOrdered(x) && !m.notice(x)
	case "clock":
		return m.clock(x)
	case "yearbc", "yearad":
		last := m.tokens[x.to-1]
		return last.word() == "." || last.word() == "c" || last.word() == "d" || last.is(upper)
	case "quarter", "half":
		n, _ := x.cap(0, "o", "ordw", "n")
		return n <= 4
	case "decade", "decades":
		return m.shortDecade(x)
	case "century":
		n, ok := x.cap(0, "rom", "n", "o", "ordw")
		return !ok || n <= 40
	}
	return true
}

// shortDecade reports whether x is a decade: it distinguishes the 60s from 60 seconds.
func (m *matcher) shortDecade(x *mention) bool {
	t := &m.tokens[x.from]
	if !t.is(plural) || t.digits != 2 || strings.ContainsAny(m.text[t.from:t.to], "'’") {
		return true
	}
	prev := m.before(x.from)
	return prev != nil && (prev.word() == "the" || prev.word() == "early" || prev.word() == "late" ||
		prev.word() == "mid" || prev.word() == "'")
}

// goesOn reports whether the words from token at say more about which year, month ... is meant: fim
// do ano | passado, início do século | XX.
func (m *matcher) goesOn(at int) bool {
	t := m.after(at)
	if t == nil {
		return false
	}
	return t.has("ofs") || t.has("last") || t.has("next") || t.has("this") || t.number >= 0 || t.is(upper) ||
		t.word() == "seguinte" || t.word() == "anterior" || t.word() == "que"
}

// calendarLike reports whether x could be part of a name.
func (m *matcher) calendarLike(x *mention) bool {
	switch x.act.name {
	case "date", "numeric", "days", "days3", "holiday", "years":
		return true
	}
	return false
}

// calendar rejects days and months that do not exist.
func (m *matcher) calendar(x *mention) bool {
	if x.act.name == "holiday" {
		return true
	}
	// Not a month and year: 5/1000.
	if x.month > 12 || x.hasYear && x.year < techYears && x.day == 0 && m.tokens[x.from].number >= 0 {
		return false
	}
	year := 2000 // a leap year if the year is unknown
	if x.hasYear {
		year = x.year
	}
	return x.day == 0 || x.month == 0 || x.day <= monthLen(year, x.month)
}

// prev reports whether the token before at is of class. It skips signs of abbreviation and
// numbering.
func (m *matcher) prev(at int, class string) bool {
	for at--; at >= 0 && !m.tokens[at+1].is(breaks); at-- {
		t := &m.tokens[at]
		if t.has(class) {
			return true
		}
		if t.word() != "." && t.word() != "º" && t.word() != "ª" && t.word() != "'" {
			return false
		}
	}
	return false
}

// before returns the token before at in the same paragraph, or nil.
func (m *matcher) before(at int) *token {
	if at == 0 || m.tokens[at].is(breaks) {
		return nil
	}
	return &m.tokens[at-1]
}

// after returns the token at index at if it is in the same paragraph, or nil.
func (m *matcher) after(at int) *token {
	if at >= len(m.tokens) || m.tokens[at].is(breaks) {
		return nil
	}
	return &m.tokens[at]
}

// sentenceStart reports whether the token at begins a sentence or a paragraph.
func (m *matcher) sentenceStart(at int) bool {
	t := m.before(at)
	return t == nil || t.word() == "." || t.word() == "!" || t.word() == "?" || t.word() == ":"
}

// named reports whether x is part of a name: Rua 25 de Abril, Ponte 25 de Abril, Rio de Janeiro. If
// a preposition is between, the word must have a capital.
func (m *matcher) named(x *mention) bool {
	if m.prev(x.from, "naming") {
		return true
	}
	at := x.from - 1
	ofs := 0
	for at >= 0 && !m.tokens[at+1].is(breaks) && (m.tokens[at].has("ofs") || m.tokens[at].word() == "a" ||
		m.tokens[at].word() == "the") && ofs < 3 {
		at, ofs = at-1, ofs+1
	}
	if at < 0 || ofs == 0 || m.tokens[at+1].is(breaks) {
		return false
	}
	t := &m.tokens[at]
	if x.act.name == "holiday" || x.month > 0 && x.day == 0 {
		if t.has("town") {
			return true
		}
	}
	return t.has("naming") && t.is(capital)
}

// numberGlue rejects numbers that are parts of longer codes: 8601:2004, v2000, 1.945, 2010-A.
func (m *matcher) numberGlue(x *mention) bool {
	if m.tokens[x.from].number >= 0 && !m.glueBefore(x.from) {
		return false
	}
	// Fractions of seconds and a time zone may follow a date with a time.
	return m.tokens[x.to-1].number < 0 || x.act.name == "datetime" || m.glueAfter(x.to)
}

// glueBefore reports whether the token before the number at allows it to be a number of its own.
func (m *matcher) glueBefore(at int) bool {
	if !m.tokens[at].is(glued) || at == 0 {
		return true
	}
	switch t := &m.tokens[at-1]; t.word() {
	case "(", "[", "{", "«", "\"", "“", "'", "–", ";", "|", ">", "*", "„", "…", "!", "?":
		return true
	case "-":
		return at > 1 && (m.tokens[at-2].word() == "mid" || m.tokens[at-2].word() == "pre" ||
			m.tokens[at-2].word() == "pos")
	case ",", ".", ":":
		if t.word() == ":" && at > 1 && m.tokens[at-2].is(upper) {
			return false // SQL:2003
		}
		// It must be the end of a word or clause, not a decimal point.
		return at == 1 || m.tokens[at-2].number < 0 && t.is(glued) && m.tokens[at-2].is(letters)
	}
	return false
}

// glueAfter is glueBefore for the token at, which follows a number.
func (m *matcher) glueAfter(at int) bool {
	t := m.after(at)
	if t == nil || !t.is(glued) {
		return true
	}
	if t.number >= 0 || t.digits > 0 || t.is(letters) {
		return false
	}
	next := m.after(at + 1)
	joined := next != nil && next.is(glued)
	switch t.word() {
	case "%", "$", "€", "£", "_", "@", "=", "×", "+":
		return false
	case ".", ",", ":", "/":
		return !joined || next.digits == 0
	case "-":
		return !joined
	}
	return true
}

// counted reports whether the number at i counts the next word: 1945 habitantes.
func (m *matcher) counted(i int) bool {
	t := m.after(i + 1)
	return t != nil && t.has("counted")
}

// yearAlone reports whether four digits are a year.
func (m *matcher) yearAlone(x *mention) bool {
	if x.to-x.from > 1 && x.act.cue == "" {
		return true // ano de 1945
	}
	if m.prev(x.from, "counting") || m.prev(x.from, "naming") {
		return false
	}
	if m.numberBeside(x) || m.numero(x.from) {
		return false
	}
	strong := m.prev(x.from, "yearcue")
	if x.act.cue == "year" { // '74
		return strong || m.prev(x.from, "ofs")
	}
	if m.listed(x, m.refused) || roundSize(x.year) && !strong {
		return false
	}
	if m.technical {
		return m.yearOfManual(x)
	}
	if m.counted(x.to - 1) {
		return strong && m.directCue(x.from)
	}
	prev, next := m.before(x.from), m.after(x.to)
	if prev != nil && prev.has("ofs") && x.from >= 2 && m.tokens[x.from-2].has("more") || prev != nil &&
		prev.has("more") {
		return false
	}
	if strong || next == nil || !next.is(letters) || next.is(capital) || !next.is(pluralS) || next.word() != "" {
		return true
	}
	// A plural in small letters follows. So it is a number, unless another word marks a year.
	about := x.from >= 2 && m.tokens[x.from-2].word() == "cerca"
	return prev != nil && (prev.has("ofs") && !about || prev.is(capital) || prev.has("month"))
}

// numberBeside reports whether a number that is not a year is next to x, as in a telephone number.
func (m *matcher) numberBeside(x *mention) bool {
	for _, t := range [...]*token{m.before(x.from), m.after(x.to)} {
		if t == nil || t.digits < 3 {
			continue
		}
		if _, ok := numYear.value(m.text, t); !ok {
			return true
		}
	}
	return false
}

// numero reports whether "No." is before at: "No. 1945". Without the point, "no" is a preposition
// and may be before a year.
func (m *matcher) numero(at int) bool {
	return at > 1 && m.tokens[at-1].word() == "." && m.tokens[at-1].is(glued) && m.tokens[at-2].word() == "no"
}

// directCue reports whether in, since or desde is directly before at.
func (m *matcher) directCue(at int) bool {
	switch t := m.before(at); {
	case t == nil:
		return false
	default:
		return t.word() == "in" || t.word() == "since" || t.word() == "desde"
	}
}

// yearsOrdered reports whether the two years of x are in order.
func yearsOrdered(x *mention) bool {
	from, _ := x.cap(0, "Y")
	if to, ok := x.cap(1, "Y"); ok {
		return from <= to
	}
	to, ok := x.cap(0, "yy")
	return ok && to > from%100
}

// monthForm rejects names of months that may be other words.
func (m *matcher) monthForm(x *mention) bool {
	for _, c := range x.caps {
		t := &m.tokens[c.at]
		switch c.class {
		case "Month":
			if !t.is(capital) {
				return false
			}
		case "mayMonth":
			if !t.is(capital) && !x.hasYear && !(c.value == 3 && x.day > 0) {
				return false
			}
		case "month":
			if c.value == 3 && !t.is(accent) && x.day == 0 && !x.hasYear {
				return false // marco
			}
		}
	}
	return true
}

// cued checks that a word before x marks a time, if the rule of x requires it.
func (m *matcher) cued(x *mention) bool {
	prev := m.before(x.from)
	switch x.act.cue {
	case "must", "feast":
		if x.hasYear {
			return true
		}
		if next := m.after(x.to); next != nil && next.word() == "of" {
			return false // the spring of a clock
		}
		return prev != nil && prev.has("cue") && !(x.act.cue == "feast" && m.named(x)) && !m.verb(x)
	case "strong":
		if x.hasYear {
			return true
		}
		if prev == nil {
			return false
		}
		switch prev.word() {
		case "in", "of", "during", "since", "until", "till", "last", "next", "this", "early", "late", "mid", "by",
			"from", "between", "every", "em", "de":
			return true
		}
		return false
	case "weekday":
		return m.bareWeekday(x, prev)
	case "hour":
		return prev != nil && prev.has("hour")
	case "clock":
		return m.tokens[x.to-1].has("unit")
	}
	return true
}

// verb reports whether verão is a form of the verb ver: after a plural or a pronoun it is. "os
// verão" for summer is rare.
func (m *matcher) verb(x *mention) bool {
	if s, ok := x.cap(0, "season"); !ok || s != 2 {
		return false
	}
	prev := m.before(x.from)
	return prev != nil && (prev.word() == "as" || prev.word() == "os" || prev.word() == "a" || prev.word() == "e" ||
		prev.word() == "que")
}

// bareWeekday reports whether x is a weekday: "na segunda" is Monday if no noun follows.
func (m *matcher) bareWeekday(x *mention, prev *token) bool {
	if prev == nil && !x.hasDir {
		return false
	}
	if !x.hasDir {
		switch prev.word() {
		case "na", "nesta", "esta", "ate", "desde", "para":
		default:
			return false
		}
	}
	next := m.after(x.to)
	return next == nil || !next.is(letters) && next.number < 0 || next.word() == "e" || next.word() == "as" ||
		next.word() == "a"
}

// clock rejects what looks like a Bible verse or a score.
func (m *matcher) clock(x *mention) bool {
	h, _ := x.cap(0, "h", "num")
	if h > 24 {
		return false
	}
	prev := m.before(x.from)
	if m.tokens[x.from].number < 0 || x.to-x.from != 3 || m.tokens[x.from+1].word() != ":" {
		return true
	}
	if prev == nil || !prev.is(letters) || prev.has("hour") {
		return m.tokens[x.from].digits == 2 || prev != nil && prev.has("hour")
	}
	return !prev.is(capital) && m.tokens[x.from].digits == 2
}
