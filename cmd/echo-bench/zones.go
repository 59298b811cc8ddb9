package main

import (
	"encoding/json"
	"fmt"

	"github.com/echo-node/echo-node/dht/zonesim"
)

type zonesCmd struct {
	Peers    int     `default:"100000" help:"Peers of the swarm."`
	ZoneMax  int     `default:"400" help:"Members above which a zone splits."`
	Replicas int     `default:"3" help:"Replicas of a slice."`
	Dead     float64 `default:"0" help:"Share of the peers in the routing tables that are dead, 0 to 0.5."`
	Lookups  int     `default:"2000" help:"Searches for an owner with nothing remembered."`
	Senders  int     `default:"20" help:"Peers whose forwarding is followed."`
	Links    int     `default:"50000" help:"Foreign links that each of them forwards."`
	Seed     uint64  `default:"1" help:"Seed of everything."`
	JSON     bool    `help:"Print JSON."`
}

// Run simulates the zones of a large swarm and prints their cost.
func (c *zonesCmd) Run(out output) error {
	r, err := zonesim.Run(zonesim.Options{Peers: c.Peers, ZoneMax: c.ZoneMax, Replicas: c.Replicas, Dead: c.Dead,
		Lookups: c.Lookups,
		Senders: c.Senders, Links: c.Links, Seed: c.Seed})
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", errUsage, err)
	case c.JSON:
		return json.NewEncoder(out.out).Encode(r)
	}
	return r.Text(out.out)
}
