package churn

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// The acts of an event.
const (
	actKill    = "kill"
	actRestart = "restart"
	actCut     = "cut"
	actHeal    = "heal"
	actJoin    = "join"
	actBefore  = "before" // record owners just before the first join
	actAfter   = "after"  // record owners when it has settled
)

// event is one thing that is done to the swarm.
type event struct {
	at  time.Duration // since the seeds
	act string
	// peer is the peer that is killed, restarted or joins. If the peer to kill is not up, the
	// next one that is up is killed. With Random, a peer that is starting can be killed, too.
	peer int
	// side is one half of a cut; the other peers are the other half.
	side []int
}

// settleJoin is how long a join has to settle before its owners are recorded.
const settleJoin = 15 * time.Second

// plan returns all events in order: it is a pure function of o. Kills come every KillEvery, or
// with Random at some moment of each, never the same peer twice in a row. The joins are spread
// over the first half, and the cut begins after two fifths.
func plan(o Options) []event {
	rng := rand.New(rand.NewPCG(o.Seed, 0xc4))
	var all []event
	add := func(at time.Duration, act string, peer int, side ...int) {
		if at < o.Duration {
			all = append(all, event{at, act, peer, side})
		}
	}
	present := o.Peers
	for j := range max(o.Joins, 0) {
		at := o.Duration * time.Duration(j+1) / time.Duration(2*(o.Joins+1))
		if j == 0 {
			add(at-1, actBefore, 0)
			add(at+settleJoin, actAfter, 0)
		}
		add(at, actJoin, o.Peers+j)
	}
	if o.Cut > 0 && present > 1 {
		at := o.Duration * 2 / 5
		everybody := rng.Perm(present)
		add(at, actCut, 0, everybody[:present/2]...)
		all = append(all, event{min(at+o.Cut, o.Duration), actHeal, 0, nil})
	}
	if o.KillEvery > 0 {
		last := -1
		for at := o.KillEvery; at < o.Duration; at += o.KillEvery {
			victim := rng.IntN(present)
			if victim == last {
				victim = (victim + 1) % present
			}
			last = victim
			at := at
			if room := o.KillEvery - o.Restart; o.Random && room > 0 {
				at -= time.Duration(rng.Int64N(int64(room)))
			}
			add(at, actKill, victim)
			add(at+o.Restart, actRestart, victim) // or at the end
		}
	}
	slices.SortStableFunc(all, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	return all
}
