package period

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"sync"
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

// action is what a rule does with what it matched.
type action struct {
	name string
	args map[string]string
}

func (a *action) arg(name string) int {
	n, _ := strconv.Atoi(a.args[name])
	return n
}

// element is one place of a pattern: a word or a class of them.
type element struct {
	word, class string
	glued       bool
}

// node is a state of the trie of all patterns.
type node struct {
	words   map[string]*node // a word, after white space or not
	glued   map[string]*node // a word, not after white space
	classes []*edge
	action  *action // what a match that ends here means
}

type edge struct {
	class string
	glued bool
	to    *node
}

// ruleset is lexicon and rules, compiled. It does not change.
type ruleset struct {
	lexicon map[string][]entry
	words   map[string]string // the vocabulary, to itself
	root    *node
}

// standard compiles the built-in data once.
var standard = sync.OnceValue(func() *ruleset {
	r, err := parseRules(lexiconText, rulesText)
	if err != nil {
		panic("period: built-in rules: " + err.Error()) // TestRules keeps this from happening
	}
	return r
})

func (r *ruleset) knows(folded []byte) bool { _, ok := r.words[string(folded)]; return ok }

// parseRules compiles a lexicon and rules in the forms that lexicon.txt and
// rules.txt describe.
func parseRules(lexicon, rules string) (*ruleset, error) {
	r := &ruleset{lexicon: make(map[string][]entry), words: make(map[string]string), root: &node{}}
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
	return r, nil
}

func (r *ruleset) addWords(line string) error {
	head, words, ok := strings.Cut(line, ":")
	class, value, ok2 := strings.Cut(head, " ")
	n, err := strconv.Atoi(value)
	if !ok || !ok2 || err != nil {
		return fmt.Errorf("want class value: words, have %q", line)
	}
	var c cutter
	for _, w := range strings.Fields(words) {
		w = string(c.fold(w, nil))
		r.words[w] = w
		r.lexicon[w] = append(r.lexicon[w], entry{class, n})
	}
	return nil
}

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
	return r.addPattern(r.root, strings.Fields(pattern), act)
}

// addPattern adds what is left of a pattern below at, every alternative of its
// first place as a way of its own.
func (r *ruleset) addPattern(at *node, places []string, act *action) error {
	if len(places) == 0 {
		if at.action == nil { // the first rule of two alike wins
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
		if err := r.addPattern(at.follow(e), places[1:], act); err != nil {
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
		r.words[e.word] = e.word
		return nil
	}
	if numeric(e.class) {
		return nil
	}
	for _, entries := range r.lexicon {
		for _, known := range entries {
			if known.class == e.class {
				return nil
			}
		}
	}
	return fmt.Errorf("no class %q", e.class)
}

// follow is the node behind n for e, made if missing.
func (n *node) follow(e element) *node {
	if e.class != "" {
		for _, edge := range n.classes {
			if edge.class == e.class && edge.glued == e.glued {
				return edge.to
			}
		}
		to := &node{}
		n.classes = append(n.classes, &edge{e.class, e.glued, to})
		return to
	}
	into := &n.words
	if e.glued {
		into = &n.glued
	}
	if *into == nil {
		*into = make(map[string]*node)
	}
	if (*into)[e.word] == nil {
		(*into)[e.word] = &node{}
	}
	return (*into)[e.word]
}

// numeric says whether class is one of numbers, which number knows.
func numeric(class string) bool {
	switch class {
	case "d", "m", "m2", "Y", "yy", "n", "num2", "o", "h", "mi", "mi2", "rom", "decade":
		return true
	}
	return false
}

// classValue says whether t belongs to class, and its value there.
func classValue(class, text string, t *token) (int, bool) {
	if !numeric(class) {
		for _, e := range t.entries {
			if e.class == class {
				return e.value, true
			}
		}
		return 0, false
	}
	plain := t.number >= 0 && !t.is(plural)
	whole := plain && !t.is(ordinal)
	v := t.number
	switch class {
	case "d":
		return v, plain && v >= 1 && v <= 31 && t.digits <= 2
	case "m":
		return v, whole && v >= 1 && v <= 31 && t.digits <= 2
	case "m2":
		return v, whole && v >= 1 && v <= 12 && t.digits == 2
	case "Y":
		return v, whole && t.digits == 4 && v >= 1000 && v <= 2199
	case "yy":
		return v, whole && t.digits == 2
	case "n":
		return v, whole && t.digits <= 4 && v > 0
	case "num2":
		if n := t.value("num"); n > 0 {
			return n, true
		}
		return v, whole && t.digits <= 4
	case "o":
		return v, plain && t.is(ordinal) && t.digits <= 2 && v > 0
	case "h":
		return v, whole && t.digits <= 2 && v <= 24
	case "mi", "mi2":
		return v, whole && t.digits == 2 && v <= 59
	case "decade":
		return v, t.is(plural) && v%10 == 0 && (t.digits == 2 || v >= 1000 && v <= 2190)
	}
	n := roman(text[t.from:t.to])
	return n, t.is(upper) && n > 0 && n <= 40
}
