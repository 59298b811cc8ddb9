package api

import (
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/echo-node/echo-node/crawler/judge/period"
)

// Facets select records by what the judges found in them. Query and Export have them.
type Facets struct {
	Place   string  // the gazetteer's name of the place, or the code of its country
	Near    string  // a place, or "LATITUDE,LONGITUDE"
	Radius  float64 // kilometres around Near, default 50
	Scope   string  // the time that the text is about, as in 1939..1945,1974-04-25
	Verdict string  // in, out, undecided
}

// defaultRadius is the default of Facets.Radius in km when Near is set. No two points on earth
// are further apart than maxRadius.
const (
	defaultRadius = 50
	maxRadius     = 20_038
	maxScopeText  = 512
)

// FacetParams are the parameters of Facets; see FilterParams.
type FacetParams struct {
	Place   string `query:"place" doc:"where the record is from: the name of a place or a country's two letters, as Porto or PT"`
	Near    string `query:"near" doc:"a place, or latitude,longitude: records from around there"`
	Radius  string `query:"radius" doc:"kilometres around near, 50 when absent"`
	Scope   string `query:"scope" doc:"the time that the text speaks of: years, months, days and FROM..TO with commas between them, as 1939..1945"`
	Verdict string `query:"verdict" doc:"of accounts: in, out or undecided, whether they belong to the community"`
}

func (p FacetParams) check(f *faults) Facets {
	out := Facets{
		Place: f.text("place", p.Place, maxFilterText), Near: f.text("near", p.Near, maxFilterText),
		Scope: f.text("scope", p.Scope, maxScopeText), Verdict: f.text("verdict", p.Verdict, maxFilterText),
	}
	switch radius := strings.TrimSpace(p.Radius); {
	case radius != "" && out.Near == "":
		f.add("query.radius", p.Radius, "needs near")
	case radius != "":
		km, err := strconv.ParseFloat(radius, 64)
		if err != nil || math.IsNaN(km) || km <= 0 || km > maxRadius {
			f.add("query.radius", p.Radius, "must be kilometres, above 0 and at most %d", maxRadius)
		} else {
			out.Radius = km
		}
	case out.Near != "":
		out.Radius = defaultRadius
	}
	if out.Scope != "" {
		if _, err := period.ParseScope(out.Scope); err != nil {
			f.add("query.scope", p.Scope,
				"must be years, months, days or FROM..TO with commas between them, as 1939..1945: %v", err)
		}
	}
	if kinds := []string{"", "in", "out", "undecided"}; !slices.Contains(kinds, out.Verdict) {
		f.add("query.verdict", p.Verdict, "must be in, out or undecided")
	}
	return out
}

func (c Facets) put(v url.Values) {
	put(v, "place", c.Place)
	put(v, "near", c.Near)
	if c.Near != "" && c.Radius != 0 {
		v.Set("radius", strconv.FormatFloat(c.Radius, 'g', -1, 64))
	}
	put(v, "scope", c.Scope)
	put(v, "verdict", c.Verdict)
}

// facetParams returns the parameters of Facets in v.
func facetParams(v url.Values) FacetParams {
	return FacetParams{Place: v.Get("place"), Near: v.Get("near"), Radius: v.Get("radius"), Scope: v.Get("scope"),
		Verdict: v.Get("verdict")}
}
