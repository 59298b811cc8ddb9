package node

import "github.com/echo-node/echo-node/partition"

func testCharter() partition.Charter {
	c := partition.DefaultCharter("test", "founder")
	c.SliceBits = 6
	return c
}
