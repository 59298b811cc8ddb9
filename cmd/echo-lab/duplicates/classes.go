package duplicates

import (
	"fmt"
	"slices"
	"strings"

	"github.com/echo-node/echo-node/crawler/judge/duplicates"
	"github.com/echo-node/echo-node/crawler/judge/duplicates/duplicatestest"
)

// class is one way to make a second text from a text.
type class struct {
	name  string
	other bool    // the second text says something else: it is no copy
	least float64 // share that must be found of texts of paperWords words
	make  func(v *duplicatestest.Vocabulary, text []string) string
}

// The numbers that "number swapped" exchanges.
const (
	oneNumber     = "41"
	anotherNumber = "42"
)

// classes returns all kinds of edits.
func classes() []class {
	edited := func(n int) func(*duplicatestest.Vocabulary, []string) string {
		return func(v *duplicatestest.Vocabulary, t []string) string { return strings.Join(v.Edit(t, n), " ") }
	}
	comment := func(n int) func(*duplicatestest.Vocabulary, []string) string {
		return func(v *duplicatestest.Vocabulary, t []string) string {
			return strings.Join(append(v.Text(n), t...), " ")
		}
	}
	return []class{
		{name: "marks only", least: 1, make: func(_ *duplicatestest.Vocabulary, t []string) string {
			return "RT @u: " + strings.Join(t, " ")
		}},
		{name: "reordered", least: 1, make: func(v *duplicatestest.Vocabulary, t []string) string {
			at := 1 + v.Rand.IntN(len(t)-1)
			return strings.Join(append(slices.Clone(t[at:]), t[:at]...), " ")
		}},
		{name: "repeated word", least: 1, make: func(v *duplicatestest.Vocabulary, t []string) string {
			at := v.Rand.IntN(len(t))
			return strings.Join(slices.Insert(slices.Clone(t), at, t[at], t[at]), " ")
		}},
		{name: "new short URL", least: 1, make: func(v *duplicatestest.Vocabulary, t []string) string {
			return strings.Join(t, " ") + fmt.Sprintf(" https://t.co/%x", v.Rand.Uint64())
		}},
		{name: "1 word edited", least: 0.95, make: edited(1)},
		{name: "2 words edited", make: edited(2)},
		{name: "3 words edited", make: edited(3)},
		{name: "comment of 1", make: comment(1)},
		{name: "comment of 2", make: comment(2)},
		{name: "comment of 3", make: comment(3)},
		{name: "negated", other: true, make: func(v *duplicatestest.Vocabulary, t []string) string {
			return strings.Join(slices.Insert(slices.Clone(t), 1+v.Rand.IntN(len(t)-1), "não"), " ")
		}},
		{name: "number swapped", other: true, make: func(_ *duplicatestest.Vocabulary, t []string) string {
			return strings.Replace(strings.Join(t, " "), oneNumber, anotherNumber, 1)
		}},
	}
}

// The texts of one planting; their ids begin with these words.
const (
	baseText    = "base"
	copyText    = "copy"
	relatedText = "related"
)

// plant makes a text, a second one from it, and one of the same topic, perClass times for each
// class.
func plant(o Options) []duplicates.Text {
	v := duplicatestest.NewVocabulary(o.Seed, vocabularySize)
	var texts []duplicates.Text
	add := func(kind string, class, n int, text string) {
		id := fmt.Sprintf("%s/%d/%d", kind, class, n)
		texts = append(texts, duplicates.Text{ID: id, Time: int64(len(texts)), Text: text})
	}
	for i, class := range classes() {
		for n := range o.PerClass {
			text := v.Text(o.Words)
			if class.name == "number swapped" {
				text[o.Words/2] = oneNumber
			}
			add(baseText, i, n, strings.Join(text, " "))
			add(copyText, i, n, class.make(v, text))
			// The same topic: two thirds of the words, in the same places.
			related := slices.Clone(text)
			for _, at := range v.Rand.Perm(o.Words)[:o.Words/3] {
				related[at] = v.Word()
			}
			add(relatedText, i, n, strings.Join(related, " "))
		}
	}
	return texts
}
