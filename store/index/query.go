package index

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/blevesearch/bleve/v2/analysis"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Caps of a query.
const (
	MaxQueryBytes = 4 << 10
	MaxQueryTerms = 64    // words, those of phrases and exclusions included
	MaxHits       = 10000 // Offset + Limit
	defaultLimit  = 10
)

// ErrQuery is wrapped when a query is over a cap.
var ErrQuery = errors.New("index: query refused")

// Query asks for records. The zero Query finds everything.
type Query struct {
	Text   string            // the query language of the package comment
	Slices []partition.Slice // only records of these; nil = all documents there are
	Kind   string            // page, profile, post, edges; "" = any
	Lang   string            // BCP 47: "pt" also finds "pt-BR"; "" = any
	Site   string            // partition.Site; "" = any
	Since  time.Time         // records of this time or later; zero = any
	Until  time.Time         // records before this time; zero = any
	Facets                   // what the judges found
	Limit  int               // hits to answer, default 10
	Offset int               // hits to leave out first; Offset + Limit at most MaxHits
	After  *Place            // only hits that come after this one; nil = all
	// Beside makes Hit.Beside of the record of a hit, which it must not keep; nil = nothing.
	Beside func(*store.Record) []byte
}

// Place is a hit's place in the order of an answer, see Hit.Compare.
type Place struct {
	Score float64
	Key   partition.Key
	Post  string
}

// plan is a parsed query: phrases of one word or more.
type plan struct {
	must, not [][]term
	terms     []string // the distinct words of must, in order: what is scored
}

// term is a word of a phrase.
type term struct {
	word string
	at   int // how many places after the phrase's first word
}

// parse never fails but on size.
func parse(a analysis.Analyzer, text string) (plan, error) {
	var p plan
	if len(text) > MaxQueryBytes {
		return p, fmt.Errorf("%w: %d bytes, at most %d", ErrQuery, len(text), MaxQueryBytes)
	}
	n := 0
	seen := map[string]bool{}
	for rest := text; ; {
		var part string
		var not, ok bool
		if part, not, rest, ok = cut(rest); !ok {
			break
		}
		words := termsOf(a, part)
		if len(words) == 0 {
			continue
		}
		if n += len(words); n > MaxQueryTerms {
			return plan{}, fmt.Errorf("%w: more than %d words", ErrQuery, MaxQueryTerms)
		}
		if not {
			p.not = append(p.not, words)
			continue
		}
		p.must = append(p.must, words)
		for _, t := range words {
			if !seen[t.word] {
				seen[t.word] = true
				p.terms = append(p.terms, t.word)
			}
		}
	}
	return p, nil
}

// cut takes the first word or quoted phrase off s. A quote that is not closed
// lasts to the end.
func cut(s string) (part string, not bool, rest string, ok bool) {
	s = strings.TrimLeft(s, " \t\r\n\u00a0\u3000")
	if s == "" {
		return "", false, "", false
	}
	if len(s) > 1 && s[0] == '-' {
		not, s = true, s[1:]
	}
	if s[0] == '"' {
		part, rest, _ = strings.Cut(s[1:], `"`)
		return part, not, rest, true
	}
	end := strings.IndexAny(s, " \t\r\n\u00a0\u3000\"")
	if end < 0 {
		return s, not, "", true
	}
	return s[:end], not, s[end:], true
}

// termsOf are the words of text as a makes them.
func termsOf(a analysis.Analyzer, text string) []term {
	var out []term
	first := 0
	for _, t := range a.Analyze([]byte(text)) {
		if out == nil {
			first = t.Position
		}
		out = append(out, term{string(t.Term), t.Position - first})
	}
	return out
}

// window is the range of hits asked for.
func (q Query) window() (offset, limit int, err error) {
	limit = q.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	offset = max(q.Offset, 0)
	if offset > MaxHits || limit > MaxHits-offset {
		return 0, 0, fmt.Errorf("%w: hits %d to %d, at most %d", ErrQuery, offset, offset+limit, MaxHits)
	}
	return offset, limit, nil
}
