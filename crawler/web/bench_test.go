package web

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest"
	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/partition"
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

// BenchmarkPage runs a fetched page through all steps from its bytes to its record, with all
// judges. The pages are those that "echo-bench crawl" serves.
func BenchmarkPage(b *testing.B) {
	src, err := New(Options{Client: &fetch.Client{}})
	if err != nil {
		b.Fatal(err)
	}
	world := crawltest.NewWorld(crawltest.Options{Sites: 30, Pages: 20, Words: 1500, Plain: true, Seeds: 30})
	type fetched struct {
		task fetch.Task
		resp *fetch.Response
	}
	var pages []fetched
	bytes := 0
	for _, addr := range world.Seeds() {
		answer := httptest.NewRecorder()
		world.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, addr, nil))
		k, err := partition.ParseKey(addr)
		if err != nil || answer.Code != http.StatusOK {
			b.Fatal(addr, answer.Code, err)
		}
		resp := &fetch.Response{Status: answer.Code, Header: answer.Header(), Body: answer.Body.Bytes()}
		pages = append(pages, fetched{fetch.Task{Due: store.Due{Key: k}, Now: time.Unix(1.7e9, 0)}, resp})
		bytes += len(resp.Body)
	}
	b.SetBytes(int64(bytes / len(pages)))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		var res fetch.Result
		p := pages[i%len(pages)]
		if src.page(p.task, &res, p.resp); res.Stop != "" || len(res.Record.Period) == 0 || res.Record.Copies == "" ||
			len(res.Links) == 0 {
			b.Fatalf("%s: stopped by %q, %+v", p.task.Due.Key, res.Stop, res.Record)
		}
	}
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

// BenchmarkJudge measures the judges on the extraction of a page. extract/op is the number of
// extractions that take as long as one judgement.
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
		{"dated", store.Record{Title: p.title, Text: p.text, Lang: p.lang, PublishedAt: &published,
			Declared: []string{"Aveiro, Portugal"}}},
	} {
		b.Run(tt.name, func(b *testing.B) {
			b.SetBytes(int64(len(p.text)))
			for b.Loop() {
				if err := src.judge(&tt.rec, tt.rec.Text); err != nil {
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
