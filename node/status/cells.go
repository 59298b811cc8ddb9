package status

import (
	"math"

	"github.com/golang/geo/s2"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// cells returns the geo slices as GeoJSON polygons, each with its owner, its replicas, and the
// counts of this peer's store. In hash mode there are none.
func (b *Board) cells() []feature {
	if b.Placer == nil {
		return nil
	}
	all := b.Placer.Slices()
	out := make([]feature, 0, len(all))
	for _, sl := range all {
		p := map[string]any{"kind": "cell", "level": sl.Level(), "owner": b.Quorum.Owner(sl),
			"replicas": b.Quorum.ReplicaSet(sl).Replicas}
		if st := b.Store.SliceStats(sl); st != (store.Stats{}) {
			p["keys"], p["pending"], p["records"] = st.Keys, st.Pending, st.Records
		}
		out = append(out, feature{Type: "Feature", ID: sl.String(),
			Geometry: &geometry{Type: "Polygon", Coordinates: [][][2]float64{outline(sl)}}, Properties: p})
	}
	return out
}

// outline returns a cell's corners counterclockwise, and the first one again at the end. The
// longitudes of a cell across the antimeridian go beyond 180 degrees, so that the cell is one
// piece.
func outline(sl partition.Slice) [][2]float64 {
	cell := s2.CellFromCellID(s2.CellID(sl))
	ring := make([][2]float64, 5)
	for i := range 4 {
		at := s2.LatLngFromPoint(cell.Vertex(i))
		lon := at.Lng.Degrees()
		if i > 0 {
			for lon-ring[0][0] > 180 {
				lon -= 360
			}
			for ring[0][0]-lon > 180 {
				lon += 360
			}
		}
		ring[i] = [2]float64{round4(lon), round4(at.Lat.Degrees())}
	}
	ring[4] = ring[0]
	return ring
}

func round4(x float64) float64 { return math.Round(x*1e4) / 1e4 }
