package node_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/echo-node/echo-node/node"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/node/nodetest"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/racetest"
	"github.com/echo-node/echo-node/store"
)

// held returns the text of every record in the slices that p owns.
func held(t *testing.T, p *nodetest.SimPeer) map[partition.Key]string {
	t.Helper()
	out := map[partition.Key]string{}
	missing, err := p.Node().Search().Export(context.Background(), api.Export{Local: true},
		func(r store.Record, _ string) error {
			out[r.Key] = r.Text
			return nil
		})
	if err != nil || len(missing) > 0 {
		t.Fatalf("%s: export: %v, missing %v", p.Name, err, missing)
	}
	return out
}

// A peer finds a damaged table, removes it, and gets the lost rows from the other replicas,
// wherever the damage is. Nothing is lost, and the crawl ends as without the damage.
func TestDamagedTable(t *testing.T) {
	racetest.OneProcessor(t)
	alone := crawlAlone(t)
	for name, at := range map[string]float64{"middle": 0.5, "end": 0.9} {
		t.Run(name, func(t *testing.T) {
			o := nodetest.SimOptions{World: faultWorld(), Node: node.Options{Delay: time.Second}, SliceBits: 6}
			nodetest.RunSim(t, o, func(s *nodetest.Sim) {
				for range 3 {
					s.Add()
				}
				s.Settle(time.Minute)
				s.Seed()
				time.Sleep(20 * time.Second) // during the crawl
				p := s.Peers[2]
				s.Crash(p)
				err := s.Damage(p, at)
				t.Log(err)
				if !errors.Is(err, store.ErrDamaged) {
					t.Fatalf("the damage is not found: %v", err)
				}
				s.Start(p)
				s.Settle(5 * time.Minute)
				s.WaitIdle(p, 20*time.Minute)
				waitReleased(t, s, 10*time.Minute)
				checkSim(t, s)
				for _, d := range alone.Differences(s.Outcome()) {
					t.Error(d)
				}
				time.Sleep(2 * time.Minute)
				want := map[partition.Key]string{}
				for _, q := range s.Peers {
					maps.Copy(want, held(t, q))
				}
				s.Crash(p)
				got := s.OnDisk(p)
				for k, text := range want {
					if got[k] != text {
						t.Errorf("%s has not the record of %s in %s, has %d of %d", p.Name, k, s.Charter().Slice(k),
							len(got), len(want))
						break
					}
				}
			})
		})
	}
}
