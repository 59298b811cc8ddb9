package langmodel

import (
	"embed"
	"fmt"
	"path"
	"strings"

	"github.com/echo-node/echo-node/crawler/focus/lang"
)

// writtenFiles are sentences that were written for this project in both varieties of
// Portuguese, without sight of the data: pt-PT TAB pt-BR, a file for each register and hand.
//
//go:embed written/*.tsv
var writtenFiles embed.FS

// writtenSource is how many pairs of a file count as one source: a file is of one hand,
// but its pairs go from topic to topic.
const writtenSource = 100

// written reads the pairs, each file as a register of its own; a pair of which
// samples have a side is left out, so that nothing of a source that is tested on is learnt.
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
		panic(err) // what is embedded is there
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
