package web

import (
	"strings"
	"unicode/utf8"

	"github.com/abadojack/whatlanggo"
)

// The text a language is told from.
const (
	langSample = 4 << 10 // bytes looked at
	langEnough = 120     // runes below which the page's own word counts more
)

// language is the BCP 47 tag of a page: what its text shows when that is long
// and clear, else what its lang attribute claims. Templates often claim "en"
// for pages that are not. A claim that agrees with the text keeps its region.
func language(text, claim string) string {
	claim = languageTag(claim)
	sample := text
	if len(sample) > langSample {
		sample = strings.ToValidUTF8(sample[:langSample], "")
	}
	if utf8.RuneCountInString(sample) < langEnough {
		return claim
	}
	info := whatlanggo.Detect(sample)
	found := info.Lang.Iso6391()
	if found == "" || !info.IsReliable() {
		return claim
	}
	if base, _, _ := strings.Cut(claim, "-"); base == found {
		return claim
	}
	return found
}

// languageTag is claim in the usual case when it looks like a tag, else "".
func languageTag(claim string) string {
	parts := strings.Split(strings.ReplaceAll(strings.TrimSpace(claim), "_", "-"), "-")
	if len(claim) > 35 || len(parts[0]) < 2 || len(parts[0]) > 3 {
		return ""
	}
	for i, p := range parts {
		p = strings.ToLower(p)
		if p == "" || len(p) > 8 || strings.Trim(p, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
			return ""
		}
		switch {
		case i > 0 && len(p) == 2:
			p = strings.ToUpper(p)
		case i > 0 && len(p) == 4 && p[0] > '9':
			p = strings.ToUpper(p[:1]) + p[1:]
		}
		parts[i] = p
	}
	return strings.Join(parts, "-")
}
