package index

import (
	"slices"
	"strings"
	"time"

	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/document"
	index "github.com/blevesearch/bleve_index_api"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/index/words"
)

// The fields of a document.
const (
	fieldText  = "text"  // title and text, with positions
	fieldTitle = "title" // the title again
	fieldSlice = "slice" // 16 hex digits, as term and as value
	fieldTime  = "time"  // sortTime, as value only
	fieldKind  = "kind"
	fieldLang  = "lang" // and each prefix: pt-BR is pt too
	fieldSite  = "site"
)

// MaxTextBytes is how many bytes of a record's text are indexed.
const MaxTextBytes = 1 << 20

// The parts of fieldText.
const (
	partTitle = 0
	partText  = 1
)

// exact is the analyzer of fields whose whole value is one word.
type exact struct{}

func (exact) Analyze(text []byte) analysis.TokenStream {
	return analysis.TokenStream{&analysis.Token{Term: text, End: len(text), Position: 1}}
}

// newDocument returns the document of r, with the Fingerprint p.
func newDocument(a words.Analyzers, r *store.Record, sl partition.Slice, p Fingerprint) *document.Document {
	const (
		full  = index.IndexField | index.IncludeTermVectors
		word  = index.IndexField | index.SkipFreqNorm
		value = index.IndexField | index.SkipFreqNorm | index.DocValues
	)
	d := document.NewDocument(string(docOf(r)))
	text, title := words.Clip(r.Text, MaxTextBytes), words.Clip(r.Title, MaxTextBytes)
	d.AddField(document.NewTextFieldCustom(fieldText, []uint64{partTitle}, []byte(title), full, a.Texts))
	d.AddField(document.NewTextFieldCustom(fieldText, []uint64{partText}, []byte(text), full, a.Texts))
	d.AddField(document.NewTextFieldCustom(fieldTitle, nil, []byte(title), index.IndexField,
		a.Texts))
	keyword := func(name, v string, o index.FieldIndexingOptions) {
		if v != "" {
			d.AddField(document.NewTextFieldCustom(name, nil, []byte(v), o, exact{}))
		}
	}
	keyword(fieldSlice, sliceTerm(sl), value)
	keyword(fieldTime, sortTime(timeOf(r)), value)
	keyword(fieldKind, r.Kind, word)
	for _, site := range sites(r.Key) {
		keyword(fieldSite, site, word)
	}
	for lang := langTerm(r.Lang); lang != ""; {
		keyword(fieldLang, lang, word)
		i := strings.LastIndexByte(lang, '-')
		lang = lang[:max(i, 0)]
	}
	terms, values := func(field, term string) { keyword(field, term, word) },
		func(field, term string) { keyword(field, term, value) }
	addFacets(a.Names, r, terms, values)
	addFingerprint(p, terms, values)
	return d
}

// sites returns the sites by which k is found: its own, and the one of its host without the port.
func sites(k partition.Key) []string {
	site := string(k.Site())
	if host, _, ok := strings.Cut(strings.TrimPrefix(site, "web:"), ":"); ok && strings.HasPrefix(site, "web:") &&
		k.Host() == host {
		return []string{site, "web:" + host}
	}
	return []string{site}
}

// OfSite reports whether k is found by site, which is the site of its host, with or without the
// port.
func OfSite(k partition.Key, site string) bool { return slices.Contains(sites(k), site) }

// doc is the name of a document: a Key, or a Key, a zero byte and the URI of one of its posts. So
// documents ordered by name are ordered by Key, then Post.
type doc string

func docName(k partition.Key, post string) doc {
	if post == "" {
		return doc(k)
	}
	return doc(string(k) + "\x00" + post)
}

func docOf(r *store.Record) doc { return docName(r.Key, r.Post) }

func (d doc) split() (k partition.Key, post string) {
	key, post, _ := strings.Cut(string(d), "\x00")
	return partition.Key(key), post
}

// timeOf returns the time by which a record is found.
func timeOf(r *store.Record) time.Time {
	if r.PublishedAt != nil {
		return *r.PublishedAt
	}
	return r.FetchedAt
}

func langTerm(s string) string { return strings.ToLower(words.Clip(s, 64)) }

func sliceTerm(sl partition.Slice) string { return hex16(uint64(sl)) }

// sortTime returns the second of t as text that sorts in the order of time.
func sortTime(t time.Time) string { return hex16(uint64(t.Unix()) ^ 1<<63) }
