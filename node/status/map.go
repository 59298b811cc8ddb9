package status

import (
	"context"
	"encoding/json"
)

// GeoJSON (RFC 7946) of the members, one Feature each. A member that does not report its location
// has no geometry. In geo mode the cells are included.
type (
	featureCollection struct {
		Type     string    `json:"type"`
		Features []feature `json:"features"`
	}
	feature struct {
		Type       string         `json:"type"`
		ID         string         `json:"id"`
		Geometry   *geometry      `json:"geometry"`
		Properties map[string]any `json:"properties"`
	}
	geometry struct {
		Type        string `json:"type"`
		Coordinates any    `json:"coordinates"` // longitude, latitude; for a cell, rings of them
	}
)

// Map returns the map of GET /api/v1/map.
func (b *Board) Map(context.Context) (json.RawMessage, error) {
	live, view := b.Placement.Views()
	assign := b.Quorum.Assignment()
	fc := featureCollection{Type: "FeatureCollection", Features: []feature{}}
	for _, m := range view.Members() {
		_, alive := live.Find(m.ID)
		f := feature{Type: "Feature", ID: m.ID,
			Properties: map[string]any{"kind": "member", "slices": len(assign[m.ID]), "capacity": m.Capacity,
				"alive": alive, "self": m.ID == b.ID}}
		if m.Location != nil {
			f.Geometry = &geometry{Type: "Point", Coordinates: [2]float64{m.Location.Lon, m.Location.Lat}}
		}
		fc.Features = append(fc.Features, f)
	}
	fc.Features = append(fc.Features, b.cells()...)
	return json.Marshal(fc)
}
