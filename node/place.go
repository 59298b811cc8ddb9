package node

import (
	"cmp"
	"fmt"

	"github.com/echo-node/echo-node/node/geoplace"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/geo"
)

// openPlacer opens the gazetteer if the swarm is in geo mode, and returns all slices. Peers with
// another gazetteer would put units into other slices, so that is an error.
func (n *Node) openPlacer() ([]partition.Slice, error) {
	if n.charter.Mode != partition.ModeGeo {
		return n.charter.AllSlices(nil)
	}
	g, err := n.gazetteer()
	if err != nil {
		return nil, err
	}
	if own := g.Digest(); own != n.charter.Gazetteer {
		return nil, fmt.Errorf("the swarm %s uses gazetteer %s, this program %s", n.charter.Name, n.charter.Gazetteer,
			own)
	}
	n.placer = geoplace.New(geoplace.Options{Charter: n.charter, Store: n.store, Logger: n.log,
		Judge: geo.NewJudge(g, n.charter.CellLevel)})
	return n.charter.AllSlices(n.placer.Slices())
}

// withGazetteer returns c. In geo mode it adds this program's gazetteer and the cell level (0: the
// default).
func withGazetteer(c partition.Charter, level int) (partition.Charter, error) {
	if c.Mode != partition.ModeGeo {
		return c, nil
	}
	g, err := geo.Open()
	if err != nil {
		return c, err
	}
	c.CellLevel, c.Gazetteer = cmp.Or(level, geo.CellLevel), g.Digest()
	return c, nil
}
