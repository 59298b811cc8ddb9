package poll

import "strings"

// item is an element of an order: by at, then by name.
type item struct {
	at   int64
	name string
}

// heap is a binary heap of items, the least first, or with down the greatest at first; ties by
// name in both cases. An item removed from the middle stays until it reaches the top. It is
// skipped then, because the caller says whether an item is still valid.
type heap struct {
	all  []item
	down bool
}

func (h *heap) less(i, j int) bool {
	a, b := h.all[i], h.all[j]
	if a.at != b.at {
		return (a.at < b.at) != h.down
	}
	return strings.Compare(a.name, b.name) < 0
}

func (h *heap) push(v item) {
	h.all = append(h.all, v)
	for i := len(h.all) - 1; i > 0; {
		up := (i - 1) / 2
		if !h.less(i, up) {
			return
		}
		h.all[i], h.all[up] = h.all[up], h.all[i]
		i = up
	}
}

func (h *heap) pop() {
	last := len(h.all) - 1
	h.all[0], h.all[last] = h.all[last], item{}
	h.all = h.all[:last]
	for i := 0; ; {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < last; c++ {
			if h.less(c, least) {
				least = c
			}
		}
		if least == i {
			return
		}
		h.all[i], h.all[least] = h.all[least], h.all[i]
		i = least
	}
}

// first returns the first item that is still valid; ok is false if there is none.
func (h *heap) first(there func(item) bool) (v item, ok bool) {
	for len(h.all) > 0 {
		if there(h.all[0]) {
			return h.all[0], true
		}
		h.pop()
	}
	return item{}, false
}

// rebuild keeps only the valid items, when most of them are not.
func (h *heap) rebuild(live int, there func(item) bool) {
	if len(h.all) < 64 || len(h.all) < 4*live {
		return
	}
	old := h.all
	h.all = make([]item, 0, live)
	for _, v := range old {
		if there(v) {
			h.push(v)
		}
	}
}
