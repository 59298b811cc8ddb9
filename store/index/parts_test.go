package index

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/bleve/v2/analysis"
	"golang.org/x/text/unicode/norm"

	"github.com/echo-node/echo-node/store/index/words"
)

// found reports whether a text of these words contains the phrase, as a search does.
func found(text analysis.TokenStream, phrase []term) bool {
	at := map[string]map[int]bool{}
	for _, t := range text {
		if at[string(t.Term)] == nil {
			at[string(t.Term)] = map[int]bool{}
		}
		at[string(t.Term)][t.Position] = true
	}
	for begin := range at[phrase[0].word] {
		all := true
		for _, t := range phrase {
			all = all && at[t.word][begin+t.at]
		}
		if all {
			return true
		}
	}
	return false
}

// The words that find a word, and words that do not.
func TestPartsOfWords(t *testing.T) {
	a := words.New()
	for _, c := range []struct{ text, yes, no string }{
		{"see pg_hba.conf there", "pg_hba.conf pg hba conf hba.conf pg_hba", "conf.hba pg.hba see.pg"},
		{"http://www.boost.org/libs/x.hpp", "boost.org www.boost.org www boost org hpp x.hpp", "www.org boost.com"},
		{"Boost. Org", "boost org", "boost.org"},
		{"os.getcwd() std::vector a/b-c", "os.getcwd getcwd os std vector std::vector a/b-c b", "getcwd.os"},
		{"version 10.2.3 of 1,000", "10.2.3 10.2 2.3 10 1,000 000", "10.3 1.000 1000"},
		{"XMLHttpRequest getElementById URLs iPhone JSON",
			"XMLHttpRequest xmlhttprequest http request Element getelementbyid by URLs urls phone json",
			"httprequest ls"},
		{"l'eau d’Artagnan", "eau l'eau artagnan", "leau"},
		{"サブネットマスクを設定する", "マスク サブネット サブネットマスク 設定 設定する を マ", "スマ クマ 定設"},
		{"ﾏｽｸ と 東京都庁", "マスク 東京 都庁 京都 東", "東庁"},
		{"서울에서 IT기술을", "서울 서울에서 IT 기술 it기술", "울서"},
		{"co\u00adoperate soft\u00adhyphen.txt", "cooperate softhyphen softhyphen.txt txt", "co operate"},
		{"Ação AÇÃO.Ção", "acao ação acao.cao", ""},
	} {
		text := a.Texts.Analyze([]byte(c.text))
		for _, q := range strings.Fields(c.yes) {
			if !found(text, termsOf(a.Queries, q)) {
				t.Errorf("%q is not found by %q: %v", c.text, q, termsOf(a.Queries, q))
			}
		}
		for _, q := range strings.Fields(c.no) {
			if found(text, termsOf(a.Queries, q)) {
				t.Errorf("%q is found by %q: %v", c.text, q, termsOf(a.Queries, q))
			}
		}
		for _, tok := range text { // each token is where its place says
			if tok.Start < 0 || tok.End > len(c.text) || tok.Start >= tok.End {
				t.Errorf("%q: %q at %d to %d", c.text, tok.Term, tok.Start, tok.End)
			}
		}
	}
	// Phrases may cross the boundary of two words.
	for text, phrase := range map[string]string{"edit pg_hba.conf now": "edit pg_hba.conf now",
		"use 東京都庁 now": "use 東京都庁 now", "new XMLHttpRequest object": "new xmlhttprequest object"} {
		p, err := parse(a.Queries, `"`+phrase+`"`)
		if err != nil || len(p.must) != 1 || !found(a.Texts.Analyze([]byte(text)), p.must[0]) {
			t.Errorf("%q is not found by %q: %v %v", text, phrase, p.must, err)
		}
	}
}

// Any word of a text finds the text. So does any part of a word between signs, and any two
// characters of a writing system without blanks.
func FuzzPartsAreFound(f *testing.F) {
	for _, s := range []string{"pg_hba.conf os.getcwd", "XMLHttpRequest a.B.cD", "サブネットマスクを設定", "IT기술을 3월",
		"1,000.5 ﾏｽｸ ＡＢＣ.ｄ", "e.g. a‿b c·d", "a\u00adb\u200dc", "ก.ข", "㍎ ﷺ", "Ŕ.͔A"} {
		f.Add(s)
	}
	a := words.New()
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) || len(text) > 4096 {
			return
		}
		stream := a.Texts.Analyze([]byte(text))
		last := 0
		for _, tok := range stream {
			if tok.Position < last || tok.Start < 0 || tok.End > len(text) || tok.Start > tok.End {
				t.Fatalf("%q: %q at place %d after %d, bytes %d to %d", text, tok.Term, tok.Position, last, tok.Start,
					tok.End)
			}
			last = tok.Position
		}
		if most := 4 * utf8.RuneCount(norm.NFKC.Bytes([]byte(text))); len(stream) > most {
			t.Fatalf("%d words of %q, at most %d", len(stream), text, most)
		}
		words := strings.Fields(text)
		words = append(words,
			strings.FieldsFunc(text, func(r rune) bool {
				return r < 0x80 && !unicode.IsLetter(r) &&
					!unicode.IsDigit(r)
			})...)
		for i, r := range text {
			if next, size := utf8.DecodeRuneInString(text[i+utf8.RuneLen(r):]); unicode.Is(unicode.Han, r) &&
				unicode.Is(unicode.Han, next) {
				words = append(words, text[i:i+utf8.RuneLen(r)+size])
			}
		}
		for _, w := range words {
			if q := termsOf(a.Queries, w); len(q) > 0 && !found(stream, q) {
				t.Errorf("%q is not found by %q: %v", text, w, q)
			}
		}
	})
}

// The same through the index: a whole word does not find words that only look similar.
func TestSearchByParts(t *testing.T) {
	s := newStore(t)
	ix := openIndex(t, filepath.Join(t.TempDir(), "index"), s)
	for n, text := range []string{"see www.boost.org", "Boost. Org charts", "call os.getcwd now", "the os getcwd",
		"サブネットマスク", "マスクメロン", "new XMLHttpRequest()"} {
		commit(t, s, page("a.example", n, "t", text))
	}
	flush(t, ix)
	for query, want := range map[string]int{"boost.org": 1, "org": 2, "os.getcwd": 1, `"os getcwd"`: 2, "getcwd": 2,
		"マスク": 2, "ネットマスク": 1, "ク": 2,
		"request": 1, "xmlhttprequest": 1, "org -boost.org": 1, "マスク -メロン": 1, `"call os.getcwd now"`: 1} {
		res, err := ix.Search(context.Background(), Query{Text: query}, nil)
		if err != nil || int(res.Total) != want || len(res.Hits) != want {
			t.Errorf("%s: %d of %d hits, want %d, %v", query, len(res.Hits), res.Total, want, err)
		}
	}
}

func BenchmarkAnalyze(b *testing.B) {
	a := words.New()
	for name, text := range map[string]string{
		"prose": strings.Repeat("The river runs past the old town, where nobody lives any more. ", 500),
		"code":  strings.Repeat("std::vector<boost::shared_ptr> xs = make.sharedPtr(pg_hba.conf, 10.2.3); ", 500),
		"cjk":   strings.Repeat("サブネットマスクを設定する東京都庁。", 500),
	} {
		for kind, chain := range map[string]analysis.Analyzer{"parts": a.Texts, "before": a.Names} {
			b.Run(fmt.Sprint(name, "/", kind), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					chain.Analyze([]byte(text))
				}
			})
		}
	}
}
