package web

import (
	"fmt"
	"strings"
	"testing"
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
		if langs.language(p.text, "en") != "pt" {
			b.Fatal("not Portuguese")
		}
	}
}
