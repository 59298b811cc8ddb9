package period

import (
	"time"
)

// Form is the form of a time expression.
type Form string

// The forms.
const (
	FormDate      Form = "date"
	FormTime      Form = "time"
	FormInterval  Form = "interval"
	FormDuration  Form = "duration"
	FormFrequency Form = "frequency"
)

// Kind is how an expression refers to time.
type Kind string

// The kinds.
const (
	Explicit  Kind = "explicit"
	Implicit  Kind = "implicit"  // a holiday or an event, by name
	Deictic   Kind = "deictic"   // from the day of writing
	Anaphoric Kind = "anaphoric" // from a date before it in the text
	Vague     Kind = "vague"     // without crisp limits
)

// Expression is one time expression of a text.
type Expression struct {
	Text  string `json:"text"`  // as it stands in the text
	Start string `json:"start"` // first day, "2010-05-01"; "" where unresolved or without place in time
	End   string `json:"end"`   // last day, inclusive
	Value string `json:"value"` // ISO 8601 with X for unknown parts, see the package comment
	Grain Grain  `json:"grain"`
	Kind  Kind   `json:"kind"`
	Form  Form   `json:"form"`

	From int  `json:"-"` // bytes of the text
	To   int  `json:"-"`
	Span Span `json:"-"` // Start and End, if Dated
	// Dated says that the expression has a place in time.
	Dated bool `json:"-"`
	// Own says that it is a day of the page itself, such as "last updated on", and not one
	// that the text talks about.
	Own bool `json:"-"`
}

// Dated is the spans of the expressions that have a place in time, in order.
func Dated(expressions []Expression) []Span {
	var out []Span
	for i := range expressions {
		if expressions[i].Dated {
			out = append(out, expressions[i].Span)
		}
	}
	return out
}

// Tag finds the time expressions of text, in order, and resolves them. ref is the
// day of writing (its date in its own zone); without one (the zero Time) what points
// from there stays unresolved. Paragraphs end at empty lines.
func Tag(text string, ref time.Time) []Expression {
	r := resolver{hasRef: !ref.IsZero()}
	if r.hasRef {
		r.ref = DayOf(ref)
	}
	return r.tag(text)
}

// TagBlocks is Tag for a page cut into blocks: a date in one block can be the
// anchor of an expression in a later one.
func TagBlocks(blocks []string, ref time.Time) [][]Expression {
	r := resolver{hasRef: !ref.IsZero()}
	if r.hasRef {
		r.ref = DayOf(ref)
	}
	out := make([][]Expression, len(blocks))
	for i, block := range blocks {
		r.fresh = false
		out[i] = r.tag(block)
	}
	return out
}

func (r *resolver) tag(text string) []Expression {
	rules := standard()
	tokens, mentions, manual := rules.mentions(text)
	var out []Expression
	at := 0
	for i := range mentions {
		x := &mentions[i]
		for ; at <= x.from; at++ {
			if tokens[at].is(breaks) {
				r.fresh = false
			}
			if manual && tokens[at].is(newline) { // "the first Sunday of April" is of no year that stands elsewhere
				r.fresh, r.hasLast = false, false
			}
		}
		d := r.resolve(x)
		from := tokens[partOf(tokens, x.from)].from
		e := Expression{From: int(from), To: int(tokens[x.to-1].to), Value: d.value, Grain: d.grain, Kind: d.kind,
			Form: d.form}
		e.Text, e.Own = text[e.From:e.To], own(tokens, x.from)
		if e.Own { // nothing points from it
			r.fresh, r.hasLast = false, false
		}
		if d.known {
			e.Dated, e.Span = true, d.span
			e.Start, e.End = d.span.Start.String(), d.span.End.String()
		}
		out = append(out, e)
	}
	return out
}

// partOf is where "início de", "meados de", "fim de", "early", "mid-" before the
// token from begin: a part of X is X.
func partOf(tokens []token, from int) int {
	at := from - 1
	if at >= 0 && tokens[at].word() == "-" && at > 0 && tokens[at-1].word() == "mid" {
		return at - 1
	}
	if at >= 0 && !tokens[from].is(breaks) {
		switch tokens[at].word() {
		case "early", "late", "mid":
			return at
		}
	}
	ofs := 0
	for at >= 0 && (tokens[at].has("ofs") || tokens[at].word() == "the") && ofs < 2 {
		at, ofs = at-1, ofs+1
	}
	if at < 0 || ofs == 0 {
		return from
	}
	for i := at + 1; i <= from; i++ {
		if tokens[i].is(breaks) {
			return from
		}
	}
	switch tokens[at].word() {
	case "inicio", "inicios", "principio", "principios", "comeco", "comecos", "meados", "fim", "fins", "final",
		"finais",
		"beginning", "end", "middle", "start":
		return at
	case "metade", "half":
		if at > 0 && tokens[at-1].has("ordw") {
			return at - 1
		}
	}
	return from
}
