package frontier

import "strings"

// siteHeap is a binary heap of sites by key, ties by name, in which every site
// knows its place. (container/heap would box each site in an interface.)
type siteHeap []*site

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
	*h = append(*h, s)
	h.up(int(s.pos))
}

func (h *siteHeap) pop() *site {
	s := (*h)[0]
	h.remove(s)
	return s
}

func (h *siteHeap) remove(s *site) {
	i, last := int(s.pos), len(*h)-1
	h.swap(i, last)
	(*h)[last] = nil
	*h = (*h)[:last]
	if i < last {
		h.down(i)
		h.up(i)
	}
	s.pos = -1
}

func (h siteHeap) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.less(i, parent) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h siteHeap) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if right := child + 1; right < len(h) && h.less(right, child) {
			child = right
		}
		if !h.less(child, i) {
			return
		}
		h.swap(i, child)
		i = child
	}
}
