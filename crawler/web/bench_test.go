package web

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/store"
)

func somePage() string {
	var b strings.Builder
	b.WriteString(`<!doctype html><html lang="pt"><head><meta charset=utf-8><title>Uma página</title></head><body>`)
	for i := range 40 {
		fmt.Fprintf(&b, `<p>A câmara municipal aprovou ontem o novo orçamento da cidade, que prevê <b>obras</b> em todas as freguesias, número %d. <a href="/noticias/%d.html" class="link">Ler mais</a></p>`+"\n", i, i)
	}
	b.WriteString("</body></html>")
	return b.String()
}

func BenchmarkExtract(b *testing.B) {
	in := read(somePage())
	b.SetBytes(int64(len(in.body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := extract(in); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLanguage(b *testing.B) {
	p, err := extract(read(somePage()))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if langs.language(p.text, "en") != "pt-PT" {
			b.Fatal("not Portuguese")
		}
	}
}

// What the judges cost on top of the extraction of the same page: extract/op is how
// many extractions one judgement takes.
func BenchmarkJudge(b *testing.B) {
	src, err := New(Options{Client: &fetch.Client{}})
	if err != nil {
		b.Fatal(err)
	}
	in := read(somePage())
	p, err := extract(in)
	if err != nil {
		b.Fatal(err)
	}
	published := time.Date(2024, 3, 2, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name string
		rec  store.Record
	}{
		{"page", store.Record{Title: p.title, Text: p.text, Lang: p.lang}},
		{"dated", store.Record{Title: p.title, Text: p.text, Lang: p.lang, PublishedAt: &published, Declared: []string{"Aveiro, Portugal"}}},
	} {
		b.Run(tt.name, func(b *testing.B) {
			b.SetBytes(int64(len(p.text)))
			for b.Loop() {
				if err := src.judge(&tt.rec); err != nil {
					b.Fatal(err)
				}
			}
			each := b.Elapsed() / time.Duration(b.N)
			begun := time.Now()
			const rounds = 200
			for range rounds {
				if _, err := extract(in); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(each)/float64(time.Since(begun)/rounds), "extract/op")
		})
	}
}
