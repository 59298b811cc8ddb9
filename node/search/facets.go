package search

import (
	"fmt"
	"strings"

	"github.com/echo-node/echo-node/crawler/judge/period"
	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/geo"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/index"
)

// wireFacets returns f as it is sent to other peers. Only this peer looks up the coordinates of
// f.Near. The result is nil when f is empty.
func (en *Engine) wireFacets(f api.Facets) (*wire.Facets, error) {
	if f == (api.Facets{}) {
		return nil, nil
	}
	w := &wire.Facets{Place: f.Place, Verdict: f.Verdict}
	if f.Scope != "" {
		scope, err := period.ParseScope(f.Scope)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", api.ErrInvalid, err)
		}
		w.Scope = scope.String()
	}
	if f.Near == "" {
		return w, nil
	}
	g, err := en.o.Gazetteer()
	if err != nil {
		return nil, err
	}
	p := g.Resolve(f.Near, geo.Hints{}).Place
	if p == nil {
		return nil, fmt.Errorf("%w: near: the gazetteer knows no place %q", api.ErrInvalid, f.Near)
	}
	w.Lat, w.Lon, w.RadiusKm = p.Lat, p.Lon, f.Radius
	return w, nil
}

// facetsFrom returns the facets that another peer asks for.
func facetsFrom(w *wire.Facets) (index.Facets, error) {
	f := index.Facets{Place: w.GetPlace(), Verdict: w.GetVerdict()}
	if w.GetRadiusKm() > 0 {
		f.Near = &index.Near{At: partition.Point{Lat: w.Lat, Lon: w.Lon}, Km: w.RadiusKm}
	}
	if w.GetScope() == "" {
		return f, nil
	}
	scope, err := period.ParseScope(w.Scope)
	if err != nil {
		return f, err
	}
	for _, s := range scope {
		f.Scope = append(f.Scope, store.Interval{Start: s.Start.String(), End: s.End.String()})
	}
	return f, nil
}

// periodText returns the time that a record is about, as a scope: 1905-01-01..1905-12-31,…
func periodText(is []store.Interval) string {
	parts := make([]string, 0, len(is))
	for _, i := range is {
		parts = append(parts, i.Start+".."+i.End)
	}
	return strings.Join(parts, ",")
}
