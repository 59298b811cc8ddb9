package langmodel

import (
	"embed"
	"fmt"
	"path"
	"strings"

	"github.com/echo-node/echo-node/crawler/judge/lang"
)

// writtenFiles are sentences that were written for this project in both varieties of
// Portuguese, without sight of the data: pt-PT TAB pt-BR. There is one file for each register
// and author.
//
//go:embed written/*.tsv
var writtenFiles embed.FS

// writtenSource is how many pairs of a file count as one source. A file has one author, but its
// pairs change from topic to topic.
const writtenSource = 100

// written reads the pairs, each file as a separate register. It leaves out a pair if samples
// have one of its sides, so that nothing is learned of a source used for tests.
func written(samples []Sample) []Sample {
	plain := func(text string) string {
		return strings.Join(strings.Fields(strings.ToLower(stripAccents(text))), " ")
	}
	have := map[string]bool{}
	for _, s := range samples {
		if s.Lang <= lang.Pt {
			have[plain(s.Text)] = true
		}
	}
	files, err := writtenFiles.ReadDir("written")
	if err != nil {
		panic(err) // embedded files are always there
	}
	var out []Sample
	for _, f := range files {
		b, err := writtenFiles.ReadFile(path.Join("written", f.Name()))
		if err != nil {
			panic(err)
		}
		register := "written " + strings.TrimSuffix(f.Name(), ".tsv")
		n := 0
		for line := range strings.Lines(string(b)) {
			portugal, brazil, ok := strings.Cut(strings.TrimSpace(line), "\t")
			if !ok || have[plain(portugal)] || have[plain(brazil)] {
				continue
			}
			source := fmt.Sprint(register, " ", n/writtenSource)
			n++
			out = append(out, Sample{lang.PtPT, register, source, portugal},
				Sample{lang.PtBR, register, source, brazil})
		}
	}
	return out
}
