package langmodel

import (
	"math"
	"slices"

	"github.com/echo-node/echo-node/crawler/judge/lang"
)

// counter counts features by class, and the sources of each.
type counter struct {
	keys  []uint64
	rows  []counted
	shift uint
	used  int
	texts [lang.Classes]float64
}

type counted struct {
	n       [lang.Classes]uint32
	last    int32 // the source seen last
	sources int32
}

func newCounter(bits uint) *counter {
	return &counter{keys: make([]uint64, 1<<bits), rows: make([]counted, 1<<bits), shift: 64 - bits}
}

// add counts a text's features. The texts of a source must come one after the other.
func (c *counter) add(features []uint64, l lang.Lang, source int32, sources int32) {
	c.texts[l]++
	for _, h := range features {
		at := h >> c.shift
		for c.keys[at] != h && c.keys[at] != 0 {
			at = (at + 1) & uint64(len(c.keys)-1)
		}
		if c.keys[at] == 0 {
			if c.used > len(c.keys)*3/4 { // full: features that are new now are rare
				continue
			}
			c.used++
			c.keys[at] = h
			c.rows[at].last = -1
		}
		row := &c.rows[at]
		row.n[l]++
		if row.last != source {
			row.last = source
			row.sources += sources
		}
	}
}

// gain returns how informative a feature is: the G statistic of its counts against the classes,
// plus that of the two varieties of Portuguese alone.
func (c *counter) gain(n *[lang.Classes]uint32) float64 {
	g := func(from, to lang.Lang) float64 {
		var sum, texts, out float64
		for l := from; l < to; l++ {
			sum += float64(n[l])
			texts += c.texts[l]
		}
		for l := from; l < to; l++ {
			if n[l] > 0 {
				out += float64(n[l]) * math.Log(float64(n[l])*texts/(sum*c.texts[l]))
			}
		}
		return out
	}
	return g(0, lang.Classes) + 3*g(lang.PtPT, lang.Es)
}

// best returns the most informative features, best first, among those with at least two sources
// and minCount occurrences.
func (c *counter) best(limit int, minCount uint32) []uint64 {
	type scored struct {
		h uint64
		g float64
	}
	var all []scored
	for at, h := range c.keys {
		row := &c.rows[at]
		sum := uint32(0)
		for _, n := range row.n {
			sum += n
		}
		if h != 0 && row.sources >= 2 && sum >= minCount {
			all = append(all, scored{h, c.gain(&row.n)})
		}
	}
	slices.SortFunc(all, func(a, b scored) int {
		switch {
		case a.g != b.g && a.g > b.g:
			return -1
		case a.g != b.g || a.h > b.h:
			return 1
		}
		return -1
	})
	hashes := make([]uint64, min(limit, len(all)))
	for i := range hashes {
		hashes[i] = all[i].h
	}
	return hashes
}

// dictionary numbers the chosen features.
type dictionary struct {
	keys  []uint64
	ids   []int32
	shift uint
}

func newDictionary(hashes []uint64) *dictionary {
	bits := uint(1)
	for 1<<bits < 2*len(hashes) {
		bits++
	}
	d := &dictionary{make([]uint64, 1<<bits), make([]int32, 1<<bits), 64 - bits}
	for i, h := range hashes {
		at := h >> d.shift
		for d.keys[at] != 0 {
			at = (at + 1) & uint64(len(d.keys)-1)
		}
		d.keys[at], d.ids[at] = h, int32(i)
	}
	return d
}

func (d *dictionary) find(h uint64) int32 {
	at := h >> d.shift
	for d.keys[at] != h {
		if d.keys[at] == 0 {
			return -1
		}
		at = (at + 1) & uint64(len(d.keys)-1)
	}
	return d.ids[at]
}
