package service

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"

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

// Wishes are the hashtags by which texts, of a profile, ask not to be collected: #nobot,
// #noarchive, #noindex, #nosearch, #nocrawl, each once.
func Wishes(texts ...string) (out []string) {
	for _, tag := range [...][2]string{{"#nobot", "#nobots"}, {"#noarchive", "#noarchiving"},
		{"#noindex", "#noindexing"}, {"#nosearch", "#nosearching"}, {"#nocrawl", "#nocrawling"}} {
		if slices.ContainsFunc(texts, func(t string) bool { return hasTag(t, tag[0]) || hasTag(t, tag[1]) }) {
			out = append(out, tag[0])
		}
	}
	return out
}

// hasTag says whether text has a word that is tag, in any case; what stands
// around a hashtag is neither letter nor digit.
func hasTag(text, tag string) bool {
	between := func(r rune) bool {
		return r != '#' && r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
	}
	return slices.Contains(strings.FieldsFunc(strings.ToLower(text), between), tag)
}
