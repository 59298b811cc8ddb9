package service

import (
	"encoding/json"
	"strings"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Sorted is what was answered in the order it was asked for, each once, and
// what was not; what nobody asked for is left out.
func Sorted[T any](ids []string, all []T, id func(T) string) (found []T, absent []string) {
	by := make(map[string]T, len(all))
	for _, v := range all {
		by[id(v)] = v
	}
	for _, want := range ids {
		if v, ok := by[want]; ok {
			found = append(found, v)
			delete(by, want)
		} else {
			absent = append(absent, want)
		}
	}
	return found, absent
}

// Each reads the elements of a list; bad is how many of them, or of what had another shape, were
// none.
func Each[W, T any](l List[W], read func(w W, raw json.RawMessage) (T, bool)) (all []T, bad int) {
	for i, w := range l.All {
		if v, ok := read(w, l.Raw[i]); ok {
			all = append(all, v)
		} else {
			bad++
		}
	}
	return all, bad + l.Bad
}

// LinkTo is the link to an address, ok = false when it is no page that can be crawled.
func LinkTo(addr, anchor string) (l store.Link, ok bool) {
	addr = Address(Text(addr))
	if addr == "" {
		return store.Link{}, false
	}
	key, err := partition.ParseKey(addr)
	if err != nil {
		return store.Link{}, false
	}
	return store.Link{Key: key, Anchor: Line(anchor, MaxName)}, true
}

// LinksIn are the addresses that stand in a plain text, at most max of them, each once.
func LinksIn(text string, max int) (found []store.Link) {
	had := map[partition.Key]bool{}
	for word := range strings.FieldsSeq(text) {
		i := strings.Index(word, "http")
		if i < 0 || len(found) >= max {
			continue
		}
		if l, ok := LinkTo(strings.TrimRight(word[i:], ".,;:!?)]}>\"'»”’"), ""); ok && !had[l.Key] {
			had[l.Key] = true
			found = append(found, l)
		}
	}
	return found
}
