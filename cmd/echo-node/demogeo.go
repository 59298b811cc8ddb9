package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/golang/geo/s2"

	"github.com/echo-node/echo-node/crawler/crawltest"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// demoPlaces are the locations that the sites and peers of demo --partition geo declare.
func demoPlaces() []crawltest.Place {
	return []crawltest.Place{{Name: "Lisboa, Portugal", Lat: 38.72, Lon: -9.14},
		{Name: "São Paulo, Brasil", Lat: -23.55, Lon: -46.63},
		{Name: "Tokyo, Japan", Lat: 35.68, Lon: 139.69}, {Name: "Porto, Portugal", Lat: 41.15, Lon: -8.61},
		{Name: "New York City", Lat: 40.71, Lon: -74.01},
		{Name: "Nairobi, Kenya", Lat: -1.29, Lon: 36.82}, {Name: "Berlin, Germany", Lat: 52.52, Lon: 13.41},
		{Name: "Sydney, Australia", Lat: -33.87, Lon: 151.21}}
}

// geoSummary is what demo --partition geo adds to the summary.
type geoSummary struct {
	Cells int     `json:"records_in_cells"`
	Near  float64 `json:"median_km_in_cells"`
	// the first of each site, fetched to find its location
	Hash     int     `json:"records_in_hash_slices"`
	Far      float64 `json:"median_km_in_hash_slices"`
	NearPeer int     `json:"by_nearest_peer"` // of those in cells
}

// geo measures how far the pages were from the peers that fetched them.
func (d *demo) geo(ctx context.Context) (*geoSummary, error) {
	at := map[string]s2.LatLng{}
	for i, n := range d.nodes {
		p := demoPlaces()[i%len(demoPlaces())]
		at[n.ID()] = s2.LatLngFromDegrees(p.Lat, p.Lon)
	}
	site := map[string]s2.LatLng{}
	for s := range d.world.Sites() {
		p, _ := d.world.Place(s)
		site[strings.TrimSuffix(d.world.Home(s), "/")] = s2.LatLngFromDegrees(p.Lat, p.Lon)
	}
	km := func(a, b s2.LatLng) float64 { return 6371 * a.Distance(b).Radians() }
	out := &geoSummary{}
	var near, far []float64
	_, err := d.nodes[0].Search().Export(ctx, api.Export{}, func(rec store.Record, cursor string) error {
		place, ok := site["http://"+strings.TrimPrefix(string(rec.Key.Site()), "web:")]
		if !ok {
			return nil
		}
		x := km(place, at[rec.Peer])
		if !strings.HasPrefix(cursor, "g/") {
			far = append(far, x)
			return nil
		}
		least := x
		for _, p := range at {
			least = min(least, km(place, p))
		}
		if near = append(near, x); least == x {
			out.NearPeer++
		}
		return nil
	})
	out.Cells, out.Near, out.Hash, out.Far = len(near), median(near), len(far), median(far)
	return out, err
}

func median(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	slices.Sort(x)
	return x[len(x)/2]
}

func (g *geoSummary) print(w io.Writer) {
	fmt.Fprintf(w, "geo    %d records in cells, %d of them by the nearest peer, median %.0f km away; %d in hash slices, median %.0f km away\n", g.Cells, g.NearPeer, g.Near, g.Hash, g.Far)
}

// demoLocation returns the location that peer i of a demo in that mode declares.
func demoLocation(mode string, i int) *partition.Point {
	if partition.Mode(mode) != partition.ModeGeo {
		return nil
	}
	p := demoPlaces()[i%len(demoPlaces())]
	return &partition.Point{Lat: p.Lat, Lon: p.Lon}
}
