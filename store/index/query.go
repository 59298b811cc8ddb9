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

// Limits of a query.
const (
	MaxQueryBytes = 4 << 10
	MaxQueryTerms = 64    // including the words of phrases and exclusions
	MaxHits       = 10000 // Offset + Limit
	defaultLimit  = 10
)

// ErrQuery is wrapped when a query is over a limit.
var ErrQuery = errors.New("index: query refused")

// Query selects records. The zero Query finds everything.
type Query struct {
	Text   string            // in the query language of the package comment
	Slices []partition.Slice // only records of these slices; nil = all documents
	Kind   string            // page, profile, post, edges; "" = any
	Lang   string            // BCP 47: "pt" also finds "pt-BR"; "" = any
	Site   string            // partition.Site; "" = any
	Since  time.Time         // records of this time or later; zero = any
	Until  time.Time         // records before this time; zero = any
	Facets                   // conditions on the judges' results
	Limit  int               // maximum number of hits, default 10
	Offset int               // hits to skip; Offset + Limit is at most MaxHits
	After  *Place            // only hits that come after this one; nil = all
	// Beside returns Hit.Beside for the record of a hit. It must not keep the record. nil = no
	// Beside.
	Beside func(*store.Record) []byte
}

// Place is a hit's place in the order of an answer, see Hit.Compare.
type Place struct {
	Score float64
	Key   partition.Key
	Post  string
}

// plan is a parsed query: phrases of one or more words.
type plan struct {
	must, not [][]term
	terms     []string // the distinct words of must, in order; they are scored
}

// term is a word of a phrase.
type term struct {
	word string
	at   int // number of places after the phrase's first word
}

// parse parses a query. It returns an error only if the query is over a limit.
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

// cut splits the first word or quoted phrase off s. A quote that is not closed extends to the end.
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

// termsOf returns the words of text according to a.
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

// window returns the requested range of hits.
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
