package partition

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// Unit is what is placed as a whole in geo mode: a web host, an instance whose accounts stay
// together, or an account that stands alone. All Keys of a Unit have one Site and one hash
// slice, so one registrar places it. A Key with Unit "" is never placed and stays in its hash
// slice.
//
//	web, feed, media   the Site
//	ip                 ""; the pace of an address belongs to no place
//	account and lists  fan-out 0: the account's Key; 1: the Site; more: "", because
//	                   accounts that a hash groups together have no common place
//	file               ""; its site differs from its account's
//	tag, timeline,     fan-out 1: the Site, but "" for mastodon:search/Q, which
//	search             names no instance; else ""
type Unit string

// Unit returns the Unit of k.
func (c Charter) Unit(k Key) Unit {
	alone := Unit("")
	switch k.Kind() {
	case KindPage, KindFeed, KindMedia:
		return Unit(k.Site())
	case KindAccount, KindFollowers, KindFollowing:
		alone = Unit(k.Account())
	case KindTag, KindTimeline, KindSearch:
	default:
		return ""
	}
	f, site := c.Fanout[k.Service()], k.Site()
	switch {
	case f <= 0:
		return alone
	case f == 1 && !strings.HasSuffix(string(site), ":"): // no instance
		return Unit(site)
	}
	return ""
}

// ParentLevel is the level of the geo slices of cells without places.
const ParentLevel = 4

// Level returns the S2 level of a geo slice, and -1 for other slices.
func (s Slice) Level() int {
	if !s.Valid() || s.IsHash() {
		return -1
	}
	return (60 - bits.TrailingZeros64(uint64(s))) / 2
}

// MayHold reports whether rows of k can be in s. A hash slice holds the rows of its Keys. A
// cell of geo mode holds rows of placed Keys. The caller that opened the gazetteer must check
// whether it has that cell.
func (c Charter) MayHold(s Slice, k Key) bool {
	if s.IsHash() {
		return s == c.Slice(k)
	}
	level := s.Level()
	return c.Mode == ModeGeo && (level == c.CellLevel || level == ParentLevel) && c.Unit(k) != ""
}

// AllSlices lists every slice of the swarm in order: the hash slices, and in geo mode the
// cells. The caller passes the cells from the gazetteer of the Charter (package partition/geo:
// its Slices of CellLevel).
func (c Charter) AllSlices(cells []Slice) ([]Slice, error) {
	if c.Mode != ModeGeo {
		if len(cells) > 0 {
			return nil, fmt.Errorf("slices of the charter: %d cells in %s mode", len(cells), c.Mode)
		}
		return c.Slices(), nil
	}
	if len(cells) == 0 {
		return nil, errors.New("slices of the charter: no cells in geo mode")
	}
	for _, s := range cells {
		if l := s.Level(); l != c.CellLevel && l != ParentLevel {
			return nil, fmt.Errorf("slices of the charter: %v is no cell of level %d or %d", s, c.CellLevel,
				ParentLevel)
		}
	}
	all := append(slices.Clone(cells), c.Slices()...)
	slices.Sort(all)
	return slices.Compact(all), nil
}

// UnitKey returns a Key of u, and whether u is a Unit under c at all. It checks a Unit that
// another peer sent.
func (c Charter) UnitKey(u Unit) (Key, bool) {
	text := string(u)
	if host, ok := strings.CutPrefix(text, "web:"); ok {
		text = "web:https://" + host + "/"
	} else if host, ok := strings.CutPrefix(text, "mastodon:"); ok && !strings.Contains(host, "@") {
		text += "/public"
	}
	if len(text) > MaxKeyBytes {
		return "", false
	}
	k, err := parseKey(text)
	return k, err == nil && c.Unit(k) == u
}
