package service

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Sorted returns the found values in the order of ids, each once, and the ids without a value.
// Values that were not requested are left out.
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

// Each reads the elements of a list. bad is the number of elements that could not be read.
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

// LinkTo returns the link to an address; ok is false if the address cannot be crawled.
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

// LinksIn returns the URLs in a plain text, at most max of them, each once.
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

// Wishes returns the hashtags by which a profile opts out of collection: #nobot, #noarchive,
// #noindex, #nosearch, #nocrawl, each once.
func Wishes(texts ...string) (out []string) {
	for _, tag := range [...][2]string{{"#nobot", "#nobots"}, {"#noarchive", "#noarchiving"},
		{"#noindex", "#noindexing"}, {"#nosearch", "#nosearching"}, {"#nocrawl", "#nocrawling"}} {
		if slices.ContainsFunc(texts, func(t string) bool { return hasTag(t, tag[0]) || hasTag(t, tag[1]) }) {
			out = append(out, tag[0])
		}
	}
	return out
}

// hasTag reports whether text has the word tag, in any case. Letters, digits and marks around a
// hashtag make it another word.
func hasTag(text, tag string) bool {
	between := func(r rune) bool {
		return r != '#' && r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
	}
	return slices.Contains(strings.FieldsFunc(strings.ToLower(text), between), tag)
}
