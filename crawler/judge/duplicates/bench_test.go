package duplicates

import (
	"fmt"
	"iter"
	"runtime"
	"strings"
	"testing"

	"github.com/echo-node/echo-node/crawler/judge/duplicates/duplicatestest"
)

// synthetic returns n short texts. A tenth of them are copies with marks or an edit.
func synthetic(n int) iter.Seq[Text] {
	return func(yield func(Text) bool) {
		v := duplicatestest.NewVocabulary(31, 50_000)
		var recent [1024][]string
		for i := range n {
			text := v.Text(5 + v.Rand.IntN(16))
			out := strings.Join(text, " ")
			if old := recent[v.Rand.IntN(len(recent))]; old != nil && i%10 == 0 {
				out = fmt.Sprintf("RT @user%d: %s", i, strings.Join(v.Edit(old, i/10%2), " "))
			}
			recent[i%len(recent)] = text
			if !yield(Text{ID: fmt.Sprint(1_000_000_000_000 + i), Time: int64(i), Text: out}) {
				return
			}
		}
	}
}

func benchmarkGroup(b *testing.B, n int, opts Options) {
	for b.Loop() {
		groups := GroupAll(synthetic(n), opts)
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		removable := 0
		for _, g := range groups {
			removable += len(g) - 1
		}
		b.ReportMetric(float64(m.Sys)/(1<<20), "MiB")
		b.ReportMetric(100*float64(removable)/float64(n), "%removable")
	}
}

func BenchmarkGroup(b *testing.B) {
	for _, n := range []int{100_000, 500_000, 1_000_000, 2_160_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { benchmarkGroup(b, n, Options{}) })
	}
	b.Run("paper/2160000", func(b *testing.B) { benchmarkGroup(b, 2_160_000, Options{Paper: true}) })
}

// A hundred thousand equal texts must not cost quadratic time.
func BenchmarkGroupEqual(b *testing.B) {
	for b.Loop() {
		GroupAll(func(yield func(Text) bool) {
			for i := range 100_000 {
				if !yield(Text{ID: fmt.Sprint(i),
					Text: fmt.Sprintf("RT @user%d: sempre o mesmo texto de oito palavras distintas", i)}) {
					return
				}
			}
		}, Options{})
	}
}

func BenchmarkPrint(b *testing.B) {
	text := Text{ID: "1", Text: "RT @publico: Governo anuncia novas medidas para a habitação nas grandes cidades do litoral https://t.co/abc"}
	var p printer
	for b.Loop() {
		p.print(text)
	}
}

// The text of a page as the extraction returns it.
func BenchmarkPrintPage(b *testing.B) {
	paragraph := "A câmara municipal de Évora prometeu 4200 euros para as obras, mas Inês Carvalho ainda não viu os papéis.\n"
	text := Text{Text: strings.Repeat(paragraph, 80)}
	b.SetBytes(int64(len(text.Text)))
	b.ReportAllocs()
	for b.Loop() {
		NewFingerprint(text)
	}
}

func BenchmarkStripLong(b *testing.B) {
	text := strings.Repeat("RT @ana: olá (via @rui) sem marcas aqui ", 1500)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Strip(text)
	}
}
