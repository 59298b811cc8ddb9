package search

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/node/call"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/index"
)

// Export calls fn for every record of the swarm after the cursor, and returns the peers that are
// missing. Records come in store order (slice, site, Key), independent of the peer that holds them.
// A cursor is the place of the last record. When slices change hands between two exports or during
// one, no record comes twice and none is left out. An error of fn ends the export.
func (en *Engine) Export(ctx context.Context, e api.Export,
	fn func(rec store.Record, cursor string) error) ([]api.Missing, error) {
	after, err := en.spotOf(e.Cursor)
	if err != nil {
		return nil, fmt.Errorf("%w: cursor: %w", api.ErrInvalid, err)
	}
	chosen, err := en.wireFacets(e.Facets)
	if err != nil {
		return nil, err
	}
	facets, err := facetsFrom(chosen)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", api.ErrInvalid, err)
	}
	x := &exporter{en: en, e: e, open: map[string]*shelf{}, failed: map[string]error{},
		given: map[partition.Slice]*given{}, missing: map[string]*absentee{}}
	x.fn = func(rec store.Record, cursor string) error {
		if !wanted(rec, e) || chosen != nil && !facets.Match(&rec) {
			return nil
		}
		return fn(rec, cursor)
	}
	x.begin(after)
	err = x.run(ctx)
	return x.missed(ctx), err
}

// exporter is one running export. It reads all members at once, each in store order. It knows how
// far the owners of each slice have returned all its records. When a slice changes hands between
// two pages, the exporter asks for it again, so no record is lost between an old owner and a new
// one.
type exporter struct {
	en *Engine
	e  api.Export
	fn func(rec store.Record, cursor string) error

	open    map[string]*shelf
	failed  map[string]error // by peer: it did not respond, or its response was invalid
	given   map[partition.Slice]*given
	slices  []partition.Slice    // of this zone, in order; those not complete yet
	missing map[string]*absentee // by the owner of slices that are missing
	waits   int

	key      spot // the Key that captures belong to
	captures []store.Capture
}

// absentee is an owner of missing slices, and why the last of them is missing.
type absentee struct {
	slices int
	why    error
}

// given is how far the owners of a slice have returned all its records.
type given struct {
	to    spot
	whole bool // to its end
	alone bool // it was read from its owner alone, so items of it on the shelves are ignored
}

// When an owner says that a slice is not its own, or that its copy is not whole yet, the exporter
// asks again after exportWait. An export waits at most exportWaits times in all; after that such
// slices are missing.
const (
	exportWait  = 250 * time.Millisecond
	exportWaits = 40
)

// begin opens a shelf for each member, and lists the slices from after on.
func (x *exporter) begin(after spot) {
	for _, m := range x.en.swarm.Members().Members() {
		if !x.e.Local || m.ID == x.en.o.ID {
			x.open[m.ID] = x.shelf(m.ID, after)
		}
	}
	if x.e.Local {
		return
	}
	for _, s := range slices.Sorted(slices.Values(x.en.o.Slices)) {
		if s >= after.in && !x.en.swarm.Foreign(s) {
			x.slices = append(x.slices, s)
		}
	}
	x.given[after.in] = &given{to: after}
}

// shelf returns a shelf of peer's records after the given place.
func (x *exporter) shelf(peer string, after spot) *shelf {
	return &shelf{en: x.en, peer: peer, after: after, covers: x.covers,
		captures: x.e.Captures, items: withItems(x.e.Kind), only: onlyOf(x.e.Kind)}
}

// run passes all records to x.fn.
func (x *exporter) run(ctx context.Context) error {
	for {
		for id, s := range x.open {
			more, err := s.fill(ctx)
			if err != nil {
				x.failed[id] = err
			}
			if !more {
				delete(x.open, id)
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if len(x.open) == 0 {
			return x.complete(ctx, nil)
		}
		next := x.en.least(x.open)
		if err := x.complete(ctx, &next.spot); err != nil {
			return err
		}
		if g := x.given[next.in]; g != nil && g.alone {
			continue
		}
		if err := x.give(next); err != nil {
			return err
		}
	}
}

// give passes one item to x.fn. Captures come before the record of their Key and are attached to
// it.
func (x *exporter) give(item shelved) error {
	if whole := (spot{in: item.in, key: item.key}); whole != x.key {
		x.key, x.captures = whole, nil
	}
	if item.part != "" && !isItem(item.part) {
		x.captures = append(x.captures, item.capture)
		return nil
	}
	if item.part == "" {
		item.record.Captures, x.captures = x.captures, nil
	}
	return x.fn(item.record, item.cursor())
}

// of returns how far s was read.
func (x *exporter) of(s partition.Slice) *given {
	if x.given[s] == nil {
		x.given[s] = &given{}
	}
	return x.given[s]
}

// covers notes that the owner of the slices in whole returned all their records between from and
// to. If ended is set, it returned all from there to the end.
func (x *exporter) covers(from, to spot, ended bool, whole map[partition.Slice]bool) {
	for s := range whole {
		switch g := x.of(s); {
		case g.whole || s < from.in || s == from.in && g.to.compare(from) < 0:
		case ended || s < to.in:
			g.whole = true
		case s == to.in && g.to.compare(to) < 0:
			g.to = to
		}
	}
}

// complete makes sure that all records before next were passed on; nil is the end. It asks the
// owner of a slice alone for what is missing.
func (x *exporter) complete(ctx context.Context, next *spot) error {
	for len(x.slices) > 0 {
		s := x.slices[0]
		if next != nil && s > next.in {
			return nil
		}
		g, here := x.of(s), next != nil && s == next.in
		if !g.whole && !g.alone && !(here && g.to.compare(*next) >= 0) {
			if err := x.alone(ctx, s, g); err != nil {
				return err
			}
		}
		if here {
			return nil
		}
		delete(x.given, s)
		x.slices = x.slices[1:]
	}
	return nil
}

// alone reads the rest of s from its owner alone, or notes that s is missing.
func (x *exporter) alone(ctx context.Context, s partition.Slice, g *given) error {
	g.alone = true
	sh := x.shelf("", g.to)
	sh.slice = s
	for {
		sh.peer, sh.ended, sh.after = x.en.o.Quorum.Owner(s), false, g.to
		if x.en.swarm.Foreign(s) {
			return nil // it left this zone in the meantime
		}
		err := x.failed[sh.peer]
		if err == nil {
			if _, member := x.en.swarm.Members().Find(sh.peer); !member {
				err = call.ErrVanished
			}
		}
		if err == nil {
			_, err = sh.fill(ctx)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		for _, item := range sh.page {
			if err := x.give(item); err != nil {
				return err
			}
		}
		got := len(sh.page) > 0
		sh.page = nil
		switch {
		case g.whole:
			return nil
		case err == nil && got:
			continue
		case err == nil && x.waits < exportWaits:
			x.waits++
			select {
			case <-ctx.Done():
			case <-time.After(exportWait):
			}
			continue
		case err == nil:
			err = errChanging
		default:
			x.failed[sh.peer] = err
		}
		if x.missing[sh.peer] == nil {
			x.missing[sh.peer] = &absentee{}
		}
		x.missing[sh.peer].slices++
		x.missing[sh.peer].why = err
		return nil
	}
}

// errChanging is the reason for a missing slice whose owner returned nothing of it.
var errChanging = errors.New("it has not got all of them yet, or they change hands; try again")

// missed returns the owners of the missing slices.
func (x *exporter) missed(ctx context.Context) []api.Missing {
	out := []api.Missing{}
	for _, id := range slices.Sorted(maps.Keys(x.missing)) {
		gone := x.missing[id]
		out = append(out, api.Missing{Peer: id, Reason: x.en.Reason(ctx, id, gone.why), Slices: gone.slices})
	}
	return out
}

// spot is a place in store order; the zero spot is before all others. part names a capture or an
// item (items.go) of a Key. Both come before the record of their Key: first the captures, then the
// items.
type spot struct {
	in   partition.Slice
	key  partition.Key
	part string
}

// cursor returns the cursor text of s. In a hash slice it is the Key alone, because the Key
// determines the slice. Elsewhere it is the slice, a space and the Key. For a part, a space and the
// part in base64 follow.
func (s spot) cursor() string {
	if s.part != "" {
		return s.in.String() + " " + string(s.key) + " " + base64.RawURLEncoding.EncodeToString([]byte(s.part))
	}
	if s.in.IsHash() {
		return string(s.key)
	}
	return s.in.String() + " " + string(s.key)
}

// spotOf parses a cursor.
func (en *Engine) spotOf(cursor string) (s spot, err error) {
	if cursor == "" {
		return spot{}, nil
	}
	text := cursor
	if slice, key, ok := strings.Cut(cursor, " "); ok {
		if s.in, err = partition.ParseSlice(slice); err != nil {
			return spot{}, err
		}
		key, part, _ := strings.Cut(key, " ")
		b, err := base64.RawURLEncoding.DecodeString(part)
		if err != nil || len(b) > wire.MaxPart {
			return spot{}, fmt.Errorf("a part that is none: %.40q", part)
		}
		text, s.part = key, string(b)
	}
	if s.key, err = partition.KeyFromWire(text); err != nil {
		return spot{}, err
	}
	if s.in == 0 {
		s.in = en.o.Store.SliceOf(s.key)
	}
	if !en.o.Charter.MayHold(s.in, s.key) {
		return spot{}, fmt.Errorf("%s is not in %s", s.key, s.in)
	}
	return s, nil
}

// compare orders spots as Archive.RecordsFrom does.
func (s spot) compare(o spot) int {
	c := cmp.Or(cmp.Compare(s.in, o.in), strings.Compare(string(s.key.Site()), string(o.key.Site())),
		strings.Compare(string(s.key), string(o.key)))
	if c == 0 && (s.part == "") != (o.part == "") {
		return cmp.Compare(len(o.part), len(s.part))
	}
	return cmp.Or(c, strings.Compare(s.part, o.part))
}

// least takes the first item in store order off the shelves. When several peers have it, the
// owner's is returned.
func (en *Engine) least(open map[string]*shelf) shelved {
	var first *shelf
	for _, s := range open {
		if first == nil || s.page[0].spot.compare(first.page[0].spot) < 0 {
			first = s
		}
	}
	x := first.page[0]
	owner := en.o.Quorum.Owner(x.in)
	for id, s := range open {
		if s.page[0].spot == x.spot {
			if id == owner {
				x = s.page[0]
			}
			s.page = s.page[1:]
		}
	}
	return x
}

// wanted reports whether r passes the filters of e.
func wanted(r store.Record, e api.Export) bool {
	at := r.FetchedAt
	if r.PublishedAt != nil {
		at = *r.PublishedAt
	}
	return (e.Kind == "" || r.Kind == e.Kind) && isLang(r.Lang, e.Lang) &&
		(e.Site == "" || index.OfSite(r.Key, siteText(e.Site))) &&
		(e.Since.IsZero() || !at.Before(e.Since)) && (e.Until.IsZero() || at.Before(e.Until))
}

// isLang reports whether lang is the wanted language or a variety of it, as the index does: pt
// finds pt-BR. An empty wanted matches all.
func isLang(lang, wanted string) bool {
	lang, wanted = strings.ToLower(lang), strings.ToLower(wanted)
	return wanted == "" || lang == wanted || strings.HasPrefix(lang, wanted+"-")
}
