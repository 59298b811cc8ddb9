package community

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// CommunityVersion is the version of the file format of a Community (field "v").
const CommunityVersion = 1

// maxCommunity is the limit for a community's file, in bytes.
const maxCommunity = 4 << 20

// ErrCommunity is wrapped by every error of Parse.
var ErrCommunity = errors.New("not a community")

//go:embed communities/*.json
var embedded embed.FS

// Community defines who belongs. Words match as whole words. Case and accents do not matter.
type Community struct {
	V         int      `json:"v"`
	Name      string   `json:"name"`
	Countries []string `json:"countries"`         // ISO 3166-1 alpha-2
	Regions   []string `json:"regions,omitempty"` // admin1 in these countries; none = all
	Languages []string `json:"languages"`         // tags of crawler/judge/lang: pt-PT
	Rivals    []string `json:"rivals,omitempty"`  // languages of people mistaken for it: pt-BR
	Shared    []string `json:"shared,omitempty"`  // tags that may be of both: pt
	Zones     []string `json:"zones,omitempty"`   // time zones, IANA or the names that services use
	Domains   []string `json:"domains,omitempty"` // host suffixes: .pt
	// The fields with Not are evidence against belonging, as the field without Not is evidence for
	// it.
	NotDomains []string `json:"not_domains,omitempty"`

	Names    []string `json:"names,omitempty"` // given and family names that the rivals do not have
	NotNames []string `json:"not_names,omitempty"`
	Words    []string `json:"words,omitempty"` // in a description: nationality, teams, flags
	NotWords []string `json:"not_words,omitempty"`
	Born     []string `json:"born,omitempty"`   // words before a place of birth: natural de
	Origin   []string `json:"origin,omitempty"` // names of declared fields for a place of birth
	Hashtags []string `json:"hashtags,omitempty"`

	Seeds      []string `json:"seeds,omitempty"`      // accounts that belong
	Exclusions []string `json:"exclusions,omitempty"` // accounts that do not
}

// Parse parses a community's file. An unknown field is an error, because it would have no effect.
func Parse(b []byte) (Community, error) {
	var c Community
	if len(b) > maxCommunity {
		return c, fmt.Errorf("%w: %d bytes, at most %d", ErrCommunity, len(b), maxCommunity)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	file := struct {
		*Community
		// Older files have these lists. The judge never used them.
		Places    json.RawMessage `json:"places"`
		NotPlaces json.RawMessage `json:"not_places"`
	}{Community: &c}
	if err := d.Decode(&file); err != nil {
		return c, fmt.Errorf("%w: %w", ErrCommunity, err)
	}
	switch {
	case c.V != CommunityVersion:
		return c, fmt.Errorf("%w: version %d, this program reads %d", ErrCommunity, c.V, CommunityVersion)
	case c.Name == "":
		return c, fmt.Errorf("%w: it has no name", ErrCommunity)
	case len(c.Countries) == 0 && len(c.Languages) == 0:
		return c, fmt.Errorf("%w: neither countries nor languages", ErrCommunity)
	}
	for _, country := range c.Countries {
		if len(country) != 2 || strings.ToUpper(country) != country {
			return c, fmt.Errorf("%w: %q is no ISO 3166-1 code", ErrCommunity, country)
		}
	}
	return c, nil
}

// Embedded returns a community that is embedded in the program.
func Embedded(name string) (Community, error) {
	b, err := EmbeddedFile(name)
	if err != nil {
		return Community{}, err
	}
	return Parse(b)
}

// EmbeddedFile returns the file of an embedded community, by its name or the code of its first
// country.
func EmbeddedFile(name string) ([]byte, error) {
	b, err := embedded.ReadFile("communities/" + name + ".json")
	for _, other := range EmbeddedNames() {
		if err == nil {
			break
		}
		of, oerr := embedded.ReadFile("communities/" + other + ".json")
		if c, perr := Parse(of); oerr == nil && perr == nil && len(c.Countries) > 0 &&
			strings.EqualFold(c.Countries[0], name) {
			b, err = of, nil
		}
	}
	if err != nil { // the files are in the program: only the name can be wrong
		return nil, fmt.Errorf("%w: none is called %q; there are %s", ErrCommunity, name,
			strings.Join(EmbeddedNames(), ", "))
	}
	return b, nil
}

// EmbeddedNames returns the names of the embedded communities.
func EmbeddedNames() []string {
	names, err := fs.Glob(embedded, "communities/*.json")
	if err != nil {
		return nil // cannot happen: the pattern is valid
	}
	for i, n := range names {
		names[i] = strings.TrimSuffix(strings.TrimPrefix(n, "communities/"), ".json")
	}
	return names
}

// words are phrases to find in folded text.
type words []string

func newWords(list []string) words {
	var w words
	for _, s := range list {
		if f := fold(s); f != "  " {
			w = append(w, f)
		}
	}
	return w
}

// in returns the phrases that the folded text contains.
func (w words) in(text string) []string {
	var found []string
	for _, s := range w {
		if strings.Contains(text, s) {
			found = append(found, strings.TrimSpace(s))
		}
	}
	return found
}

// fold returns text in lower case without accents, with single spaces around each word. A flag is a
// word.
func fold(text string) string {
	var b strings.Builder
	b.WriteByte(' ')
	blank := true
	half := rune(0) // the first letter of a flag
	for _, r := range norm.NFD.String(text) {
		if r >= 0x1F1E6 && r <= 0x1F1FF {
			if half == 0 {
				half = r
				continue
			}
			if !blank {
				b.WriteByte(' ')
			}
			b.WriteRune(half)
			b.WriteRune(r)
			b.WriteByte(' ')
			half, blank = 0, true
			continue
		}
		half = 0
		switch {
		case unicode.Is(unicode.Mn, r):
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			b.WriteRune(unicode.ToLower(r))
			blank = false
		case !blank:
			b.WriteByte(' ')
			blank = true
		}
	}
	if !blank {
		b.WriteByte(' ')
	} else if b.Len() == 1 {
		b.WriteByte(' ')
	}
	return b.String()
}
