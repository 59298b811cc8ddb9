package period

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

//go:embed lexicon.txt
var lexiconText string

//go:embed rules.txt
var rulesText string

// entry is one meaning of a word.
type entry struct {
	class string
	value int
}

// term is a word or a mark of the vocabulary.
type term struct {
	word    string
	entries []entry
	first   []step // the first steps of all patterns that begin with it
	tens    bool   // a number that another one may follow: vinte e cinco
	tech    bool   // a word that is typical of texts about programs
}

// action is what a rule does with its match.
type action struct {
	name string
	args map[string]string

	// From args. They are fields because every match needs them.
	anchorText, yearMust, lower, alone bool
	hasDir                             bool
	dir, day                           int
	cue                                string
}

// arg returns a numeric argument, 0 if it is missing.
func (a *action) arg(name string) int {
	n, _ := strconv.Atoi(a.args[name])
	return n
}

// element is one place of a pattern: a word or a class of words.
type element struct {
	word, class string
	glued       bool
}

// node is a state of the trie of all patterns.
type node struct {
	words   map[*term]*node // a word, with or without white space before it
	glued   map[*term]*node // a word without white space before it
	classes []*edge
	action  *action // the action of a match that ends here
}

type edge struct {
	class   string
	numeric numeric
	glued   bool
	to      *node
}

// step is one edge from the root: by a word, or by a class that the word belongs to.
type step struct {
	class string
	value int
	glued bool
	to    *node
}

// ruleset is the compiled lexicon and rules. It does not change.
type ruleset struct {
	terms map[string]*term
	table [tableSize]*term     // the terms, each at its slot or after it
	marks [utf8.RuneSelf]*term // the terms of one byte
	root  *node

	numbers *node // the edges of root for numbers in digits
}

// standard compiles the built-in data once.
var standard = sync.OnceValue(func() *ruleset {
	r, err := parseRules(lexiconText, rulesText)
	if err != nil {
		panic("period: built-in rules: " + err.Error()) // TestRules ensures that this cannot happen
	}
	return r
})

// tableSize is so large that most unknown words hit a free slot at once. Most words are unknown.
const tableSize = 1 << 12

// slot returns where lookup begins: a hash of bytes that tell short words apart.
func slot[T string | []byte](word T) uint {
	n := len(word)
	if n == 0 {
		return 0
	}
	h := uint(word[0]) | uint(word[n/3])<<8 | uint(word[n/2])<<16 | uint(word[n-1])<<24
	return (h*0x9e3779b1 + uint(n)*0x85ebca6b) >> 15 % tableSize
}

// lookup returns terms[folded]. It is quicker for words that are not there.
func (r *ruleset) lookup(folded []byte) *term {
	for at := slot(folded); ; at = (at + 1) % tableSize {
		if t := r.table[at]; t == nil || t.word == string(folded) {
			return t
		}
	}
}

// term returns the term of word and creates it if it is missing.
func (r *ruleset) term(word string) *term {
	t := r.terms[word]
	if t == nil {
		t = &term{word: word}
		r.terms[word] = t
		if len(word) == 1 && word[0] < utf8.RuneSelf {
			r.marks[word[0]] = t
		}
	}
	return t
}

// marks are the marks that the guards need, in addition to those of the rules.
const marks = "()[]{}«»\"“„'–-;|>*…!?.,:%$€£_@=×+/ºª#&©_@"

// begin puts the terms into the table and sets the patterns that each can begin.
func (r *ruleset) begin() error {
	if len(r.terms) > tableSize/2 {
		return fmt.Errorf("%d words, at most %d", len(r.terms), tableSize/2)
	}
	for _, mark := range marks {
		r.term(string(mark))
	}
	for _, t := range r.terms {
		at := slot(t.word)
		for r.table[at] != nil {
			at = (at + 1) % tableSize
		}
		r.table[at] = t
		n := (&token{term: t}).value("num")
		t.tens = n >= 20 && n < 100
		t.tech = (&token{term: t}).has("tech")
		if to := r.root.words[t]; to != nil {
			t.first = append(t.first, step{to: to})
		}
		if to := r.root.glued[t]; to != nil {
			t.first = append(t.first, step{glued: true, to: to})
		}
		for _, e := range r.root.classes {
			// As a separate token that is not a number.
			if v, ok := e.value("", &token{term: t, number: -1}); ok {
				t.first = append(t.first, step{e.class, v, e.glued, e.to})
			}
		}
	}
	r.numbers = &node{}
	for _, e := range r.root.classes {
		if e.numeric != notNumeric && e.numeric != numRoman {
			r.numbers.classes = append(r.numbers.classes, e)
		}
	}
	return nil
}

// parseRules compiles a lexicon and rules in the formats that lexicon.txt and rules.txt describe.
func parseRules(lexicon, rules string) (*ruleset, error) {
	r := &ruleset{terms: make(map[string]*term), root: &node{}}
	for n, line := range strings.Split(lexicon, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		if err := r.addWords(line); err != nil {
			return nil, fmt.Errorf("lexicon line %d: %w", n+1, err)
		}
	}
	for n, line := range strings.Split(rules, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		if err := r.addRule(line); err != nil {
			return nil, fmt.Errorf("rules line %d: %w", n+1, err)
		}
	}
	return r, r.begin()
}

// addWords adds one line of the lexicon.
func (r *ruleset) addWords(line string) error {
	head, words, ok := strings.Cut(line, ":")
	class, value, ok2 := strings.Cut(head, " ")
	n, err := strconv.Atoi(value)
	if !ok || !ok2 || err != nil {
		return fmt.Errorf("want class value: words, have %q", line)
	}
	var c cutter
	for _, w := range strings.Fields(words) {
		t := r.term(string(c.fold(w, nil)))
		t.entries = append(t.entries, entry{class, n})
	}
	return nil
}

// addRule adds one line of the rules.
func (r *ruleset) addRule(line string) error {
	pattern, rest, ok := strings.Cut(line, "=>")
	fields := strings.Fields(rest)
	if !ok || len(fields) == 0 {
		return fmt.Errorf("want pattern => action, have %q", line)
	}
	if !actions(fields[0]) {
		return fmt.Errorf("no action %q", fields[0])
	}
	act := &action{name: fields[0], args: make(map[string]string)}
	for _, f := range fields[1:] {
		name, value, ok := strings.Cut(f, "=")
		if !ok {
			return fmt.Errorf("want name=value, have %q", f)
		}
		act.args[name] = value
	}
	act.read()
	return r.addPattern(r.root, strings.Fields(pattern), act)
}

// read sets the fields from args.
func (a *action) read() {
	a.anchorText = a.args["anchor"] == "text"
	a.yearMust = a.args["year"] == "must"
	a.lower, a.alone, a.cue = a.args["lower"] != "", a.args["alone"] != "", a.args["cue"]
	a.dir, a.hasDir = a.arg("dir"), a.args["dir"] != ""
	a.day = a.arg("day")
}

// addPattern adds the rest of a pattern below the node at. Each alternative of its first place
// becomes a separate edge.
func (r *ruleset) addPattern(at *node, places []string, act *action) error {
	if len(places) == 0 {
		if at.action == nil { // of two equal patterns the first wins
			at.action = act
		}
		return nil
	}
	place := places[0]
	if optional := strings.TrimSuffix(place, "?"); optional != place {
		if err := r.addPattern(at, places[1:], act); err != nil {
			return err
		}
		place = optional
	}
	for _, alternative := range strings.Split(place, "|") {
		e := element{glued: strings.HasPrefix(place, "~")}
		alternative = strings.TrimPrefix(alternative, "~")
		if class, ok := strings.CutPrefix(alternative, "%"); ok {
			e.class = class
		} else {
			e.word = alternative
		}
		if err := r.checkElement(e); err != nil {
			return err
		}
		if err := r.addPattern(at.follow(r, e), places[1:], act); err != nil {
			return err
		}
	}
	return nil
}

// checkElement adds the words of patterns to the vocabulary.
func (r *ruleset) checkElement(e element) error {
	if e.class == "" {
		if e.word == "" {
			return fmt.Errorf("empty place")
		}
		r.term(e.word)
		return nil
	}
	if numericOf(e.class) != notNumeric {
		return nil
	}
	for _, t := range r.terms {
		for _, known := range t.entries {
			if known.class == e.class {
				return nil
			}
		}
	}
	return fmt.Errorf("no class %q", e.class)
}

// follow returns the node after n for e and creates it if it is missing.
func (n *node) follow(r *ruleset, e element) *node {
	if e.class != "" {
		for _, edge := range n.classes {
			if edge.class == e.class && edge.glued == e.glued {
				return edge.to
			}
		}
		to := &node{}
		n.classes = append(n.classes, &edge{e.class, numericOf(e.class), e.glued, to})
		return to
	}
	into := &n.words
	if e.glued {
		into = &n.glued
	}
	if *into == nil {
		*into = make(map[*term]*node)
	}
	t := r.term(e.word)
	if (*into)[t] == nil {
		(*into)[t] = &node{}
	}
	return (*into)[t]
}

// numeric is a class of numbers with its own value method.
type numeric uint8

const (
	notNumeric numeric = iota // a class of the lexicon
	numDay
	numMonth
	numMonth2
	numYear
	numYear2
	numAny
	numWord
	numOrdinal
	numHour
	numMinute
	numRoman
	numDecade
)

func numericOf(class string) numeric {
	switch class {
	case "d":
		return numDay
	case "m":
		return numMonth
	case "m2":
		return numMonth2
	case "Y":
		return numYear
	case "yy":
		return numYear2
	case "n":
		return numAny
	case "num2":
		return numWord
	case "o":
		return numOrdinal
	case "h":
		return numHour
	case "mi", "mi2":
		return numMinute
	case "rom":
		return numRoman
	case "decade":
		return numDecade
	}
	return notNumeric
}

// value returns the value of t in e's class, and whether t belongs to it.
func (e *edge) value(text string, t *token) (int, bool) {
	if e.numeric != notNumeric {
		return e.numeric.value(text, t)
	}
	if t.term != nil {
		for i := range t.term.entries {
			if known := &t.term.entries[i]; known.class == e.class {
				return known.value, true
			}
		}
	}
	return 0, false
}

// value returns the value of t in class n, and whether t belongs to it.
func (n numeric) value(text string, t *token) (int, bool) {
	plain := t.number >= 0 && !t.is(plural)
	whole := plain && !t.is(ordinal)
	v := int(t.number)
	switch n {
	case numDay:
		return v, plain && v >= 1 && v <= 31 && t.digits <= 2
	case numMonth:
		return v, whole && v >= 1 && v <= 31 && t.digits <= 2
	case numMonth2:
		return v, whole && v >= 1 && v <= 12 && t.digits == 2
	case numYear:
		return v, whole && t.digits == 4 && v >= 1000 && v <= 2199
	case numYear2:
		return v, whole && t.digits == 2
	case numAny:
		return v, whole && t.digits <= 4 && v > 0
	case numWord:
		if n := t.value("num"); n > 0 {
			return n, true
		}
		return v, whole && t.digits <= 4
	case numOrdinal:
		return v, plain && t.is(ordinal) && t.digits <= 2 && v > 0
	case numHour:
		return v, whole && t.digits <= 2 && v <= 24
	case numMinute:
		return v, whole && t.digits == 2 && v <= 59
	case numDecade:
		return v, t.is(plural) && v%10 == 0 && (t.digits == 2 || v >= 1000 && v <= 2190)
	case numRoman:
		if !t.is(upper) {
			return 0, false
		}
		v = roman(text[t.from:t.to])
		return v, v > 0 && v <= 40
	}
	return 0, false
}
