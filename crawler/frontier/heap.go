package frontier

import "strings"

// siteHeap is a heap of sites by key, ties by name, in which every site knows
// its place. (container/heap would box each site in an interface.) Each node
// has four children: half the levels of a binary heap, and levels are what
// costs, a cache miss each, with 200,000 sites.
type siteHeap []entry

// entry has the site's key beside it, so that a comparison stays in the heap.
type entry struct {
	key int64
	*site
}

const arity = 4

func (h siteHeap) less(i, j int) bool {
	if h[i].key != h[j].key {
		return h[i].key < h[j].key
	}
	return strings.Compare(string(h[i].name), string(h[j].name)) < 0
}

func (h siteHeap) swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].pos, h[j].pos = int32(i), int32(j)
}

func (h *siteHeap) push(s *site) {
	s.pos = int32(len(*h))
	*h = append(*h, entry{s.key, s})
	h.up(int(s.pos))
}

func (h *siteHeap) pop() *site {
	s := (*h)[0].site
	h.remove(s)
	return s
}

func (h *siteHeap) remove(s *site) {
	i, last := int(s.pos), len(*h)-1
	h.swap(i, last)
	(*h)[last] = entry{}
	*h = (*h)[:last]
	if i < last {
		h.down(i)
		h.up(i)
	}
	s.pos = -1
}

func (h siteHeap) up(i int) {
	for i > 0 {
		parent := (i - 1) / arity
		if !h.less(i, parent) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h siteHeap) down(i int) {
	for {
		least := i
		first := arity*i + 1
		for child := first; child < min(first+arity, len(h)); child++ {
			if h.less(child, least) {
				least = child
			}
		}
		if least == i {
			return
		}
		h.swap(i, least)
		i = least
	}
}
