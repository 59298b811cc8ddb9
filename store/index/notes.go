package index

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/echo-node/echo-node/store/index/words"
)

const (
	maxNotes     = 8  // per query
	maxNoteBytes = 60 // of a word or of signs that a note quotes
)

// Notes explains, in words for people, which parts of a query are not understood: wildcards,
// fields, operators, signs. The query is still answered.
func Notes(text string) (notes []string) {
	a := words.New().Queries
	sought := false
	for rest := words.Clip(text, MaxQueryBytes); len(notes) < maxNotes; {
		quoted := strings.HasPrefix(strings.TrimPrefix(strings.TrimSpace(rest), "-"), `"`)
		part, not, left, ok := cut(rest)
		if !ok {
			break
		}
		rest = left
		none := len(termsOf(a, part)) == 0
		sought = sought || !not && !none
		if s := noteOf(part, quoted, none); s != "" && !slices.Contains(notes, s) {
			notes = append(notes, s)
		}
	}
	if len(notes) > 0 && !sought {
		notes = append(notes, "no word is left to search for: everything that passes the filters is found")
	}
	return notes
}

// noteOf explains what is not understood of one word or quoted phrase. none means that no part of
// it is searched.
func noteOf(part string, quoted, none bool) string {
	shown := words.Clip(part, maxNoteBytes)
	field, _, isField := strings.Cut(part, ":")
	flag, isName := fields[strings.ToLower(field)]
	switch {
	case none && strings.TrimSpace(part) == "":
		return ""
	case none:
		return fmt.Sprintf("%q has no letter and no digit, so it is not searched for", shown)
	case !quoted && isWildcard(part):
		return fmt.Sprintf("there are no wildcards: %q is searched for without its signs", shown)
	case !quoted && isField && isName && flag != "":
		return fmt.Sprintf("a query has no fields: instead of %q use %s", shown, flag)
	case !quoted && isField && isName:
		return fmt.Sprintf("a query has no fields: %q is searched for as words", shown)
	case !quoted && (part == "OR" || part == "AND" || part == "NOT"):
		return fmt.Sprintf("there are no operators: %q is searched for as a word; all words must be there, and -word leaves out", part)
	}
	if lost := strings.Map(sign, part); lost != "" {
		return fmt.Sprintf("signs are not searched for: %s in %q", words.Clip(lost, maxNoteBytes), shown)
	}
	return ""
}

// fields are the field names of other search engines, each with the flag that does the same here.
var fields = map[string]string{
	"site": "--site", "host": "--site", "domain": "--site", "inurl": "--site", "lang": "--lang", "language": "--lang",
	"kind": "--kind", "type": "--kind",
	"since": "--since", "after": "--since", "until": "--until", "before": "--until", "near": "--near",
	"place": "--place",
	"title": "", "intitle": "", "allintitle": "", "text": "", "intext": "", "body": "", "url": "", "author": "",
	"from": "", "filetype": "", "tag": "",
}

// isWildcard reports whether part contains a star, or a question mark before its end.
func isWildcard(part string) bool {
	return strings.Contains(part, "*") || strings.Contains(strings.TrimRight(part, "?"), "?")
}

// sign keeps the signs that people may type on purpose.
func sign(r rune) rune {
	if strings.ContainsRune("+#%$@&=<>^~|\\", r) || r >= 0x80 && unicode.In(r, unicode.Sc, unicode.Sm) {
		return r
	}
	return -1
}
