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
	Implicit  Kind = "implicit"  // a holiday or an event, by its name
	Deictic   Kind = "deictic"   // relative to the day of writing
	Anaphoric Kind = "anaphoric" // relative to a date before it in the text
	Vague     Kind = "vague"     // without exact limits
)

// Expression is one time expression of a text.
type Expression struct {
	Text  string `json:"text"`  // as the text writes it
	Start string `json:"start"` // first day, "2010-05-01"; "" if unresolved or without days
	End   string `json:"end"`   // last day, inclusive
	Value string `json:"value"` // ISO 8601 with X for unknown parts, see the package comment
	Grain Grain  `json:"grain"`
	Kind  Kind   `json:"kind"`
	Form  Form   `json:"form"`

	From int  `json:"-"` // From and To are byte offsets in the text
	To   int  `json:"-"`
	Span Span `json:"-"` // Start and End, if Dated
	// Dated reports that the expression is resolved to days.
	Dated bool `json:"-"`
	// Own reports that it is a date of the page itself, such as "last updated on", and not one that
	// the text talks about.
	Own bool `json:"-"`
}

// Dated returns the spans of the expressions that are resolved to days, in order.
func Dated(expressions []Expression) []Span {
	var out []Span
	for i := range expressions {
		if expressions[i].Dated {
			out = append(out, expressions[i].Span)
		}
	}
	return out
}

// Tag finds the time expressions of text, in order, and resolves them. ref is the day of writing
// (its date in its own zone). With the zero Time, expressions relative to that day stay unresolved.
// Paragraphs end at empty lines.
func Tag(text string, ref time.Time) []Expression {
	r := resolver{hasRef: !ref.IsZero()}
	if r.hasRef {
		r.ref = DayOf(ref)
	}
	return r.tag(text)
}

// TagBlocks is Tag for a page cut into blocks. A date in one block can be the anchor of an
// expression in a later one.
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

// tag is Tag with the state of earlier blocks.
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
			// In manuals "the first Sunday of April" has no year from another line.
			if manual && tokens[at].is(newline) {
				r.fresh, r.hasLast = false, false
			}
		}
		d := r.resolve(x)
		from := tokens[partOf(tokens, x.from)].from
		e := Expression{From: int(from), To: int(tokens[x.to-1].to), Value: d.value, Grain: d.grain, Kind: d.kind,
			Form: d.form}
		e.Text, e.Own = text[e.From:e.To], own(tokens, x.from)
		if e.Own { // no later expression refers to it
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

// partOf returns the token where "início de", "meados de", "fim de", "early" or "mid-" before the
// token from begins: a part of X is X.
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
