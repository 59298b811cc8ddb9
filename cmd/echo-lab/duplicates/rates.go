package duplicates

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/echo-node/echo-node/crawler/judge/duplicates"
	"github.com/echo-node/echo-node/crawler/judge/duplicates/duplicatestest"
)

// Rate is the share of copies in a language. The paper's share is planted as copies with other
// marks.
type Rate struct {
	Language string  `json:"language"`
	Planted  float64 `json:"planted"` // the share that the paper found
	// removable texts that echo-node's method finds, as a share of all
	Ours  float64 `json:"ours"`
	Paper float64 `json:"paper"` // the same for the paper's method
}

// rateWithin is the largest difference between a found rate and the planted one.
const rateWithin = 0.002

// measureRates plants the paper's shares among n texts of each language: 9 % of the English
// tweets were similar ones, and 7 % of the Chinese.
func measureRates(n int) []Rate {
	out := []Rate{{Language: "English", Planted: 0.09}, {Language: "Chinese", Planted: 0.07}}
	for i := range out {
		x := &out[i]
		texts := repeats(n, int(x.Planted*float64(n)), x.Language == "Chinese")
		x.Ours = removable(n, duplicates.GroupAll(slices.Values(texts), duplicates.Options{}))
		x.Paper = removable(n, duplicates.GroupAll(slices.Values(texts), duplicates.Options{Paper: true}))
	}
	return out
}

// removable returns the share of n texts that are in a group and do not represent it.
func removable(n int, groups []duplicates.Group) float64 {
	texts := 0
	for _, g := range groups {
		texts += len(g) - 1
	}
	return float64(texts) / float64(n)
}

// repeats returns n texts. The last planted ones are the first ones, passed on.
func repeats(n, planted int, chinese bool) []duplicates.Text {
	rng := rand.New(rand.NewPCG(11, 7))
	v := duplicatestest.NewVocabulary(12, 20_000)
	marks := []string{"RT @u%d: %s", "RT@u%d %s", "via @u%d %s", "@u%d %s"}
	var texts []duplicates.Text
	for i := range n {
		text := strings.Join(v.Text(6+rng.IntN(14)), " ")
		if chinese {
			text = chineseText(rng, 12+rng.IntN(40))
		}
		if i >= n-planted {
			text = fmt.Sprintf(marks[i%len(marks)], i, texts[i-(n-planted)].Text)
		}
		texts = append(texts, duplicates.Text{ID: fmt.Sprint(i), Time: int64(i), Text: text})
	}
	return texts
}

// negations are the ideographs that negate. A text without them cannot look like its opposite.
const negations = "不没沒无無未别別非勿莫否"

// chineseText returns n ideographs.
func chineseText(rng *rand.Rand, n int) string {
	out := make([]rune, n)
	for i := range out {
		out[i] = rune(0x4e00 + rng.IntN(2500))
		if strings.ContainsRune(negations, out[i]) {
			out[i] = '好'
		}
	}
	return string(out)
}
