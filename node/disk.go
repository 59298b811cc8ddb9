package node

import (
	"fmt"
	"sync"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/call"
	"github.com/echo-node/echo-node/node/diskuse"
	"github.com/echo-node/echo-node/node/search"
	"github.com/echo-node/echo-node/store/index"
)

// Options.MaxDisk limits the space that du reports for the data directory: the store and its log,
// the index and the trash. The store and the index rewrite data before they delete the old copy,
// both at once. With little data they rewrite all of it. So as much space as is used is kept free
// for that, up to diskRoomMost.
//
// No fetch starts if the used space, that room and a share for unavoidable data would exceed the
// limit. The swarm sees this as a stop (followLimits), and other peers take the slices. Copies of
// slices and links are accepted longer. They are put off when the used space and the room would
// exceed the limit. Only the trash is dropped; it gets at most a tenth of the limit.
const (
	// limit of the room: the store and the index rewrite no more than this at once
	diskRoomMost  = 512<<20 + index.MaxMerge*diskRecord
	diskComes     = 5       // 1/diskComes of the limit is for unavoidable data,
	diskComesMost = 1 << 30 // but no more than this
	diskBack      = 10      // fetching starts again 1/diskBack of the limit below it
	diskTrash     = 10      // 1/diskTrash of the limit is the most for the trash
	diskEvery     = 200 * time.Millisecond
	diskRecord    = 16 << 10 // size of a record in the index, about, before its segments are merged
	diskCost      = 50       // measuring takes at most 1/diskCost of the time
	diskRetry     = 5 * time.Second
)

// diskGauge measures how much disk the data directory takes. It is safe for concurrent use.
type diskGauge struct {
	dir   string
	most  int64        // 0 = no limit
	other func() int64 // replaces the measurement if the store is in memory
	owed  func() int64 // bytes still to be written for what is here; nil = none

	mu   sync.Mutex
	next time.Time
	used int64
	held bool // at the limit, and not yet well below it
}

func (o Options) newDiskGauge() *diskGauge { return &diskGauge{dir: o.Dir, most: o.MaxDisk} }

// toCome returns the used bytes plus those still to be written. An index that is behind still grows
// when the crawl has stopped.
func (g *diskGauge) toCome() int64 {
	used := g.use()
	if g.owed != nil {
		used += g.owed()
	}
	return used
}

// diskOwed is diskGauge.owed: the lag of the index, and the fetches that may be under way.
func (n *Node) diskOwed() int64 {
	return (int64(search.Lag(n.store, n.index)) + int64(n.o.Workers)) * diskRecord
}

// use returns the used bytes. The value is at most diskEvery old, or a little
// older with very many files.
func (g *diskGauge) use() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if now.Before(g.next) {
		return g.used
	}
	if g.other != nil {
		g.used = g.other()
	} else if used, err := diskuse.Allocated(g.dir); err == nil {
		g.used = used
	}
	g.next = now.Add(max(diskEvery, diskCost*time.Since(now)))
	return g.used
}

// diskRoom returns the room to keep free when used bytes are in use.
func diskRoom(used int64) int64 { return min(used, diskRoomMost) }

// full returns why nothing may be fetched, or "" while there is room.
func (g *diskGauge) full() string {
	if g.most == 0 {
		return ""
	}
	used := g.toCome()
	room := diskRoom(used) + min(g.most/diskComes, diskComesMost)
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case used+room >= g.most:
		g.held = true
	case used+room < g.most-g.most/diskBack:
		g.held = false
	}
	if !g.held {
		return ""
	}
	return fmt.Sprintf("disk %d of %d bytes, %d are kept free to work in", used, g.most, room)
}

// crowded reports whether there is not even room for what other peers send.
func (g *diskGauge) crowded() bool {
	if g.most == 0 {
		return false
	}
	used := g.use()
	return used+diskRoom(used) >= g.most
}

// putsOff refuses, for now, requests that would make the store of a peer at its limit grow. Links
// stay in their senders' outboxes; copies and logs stay with the owners.
func (n *Node) putsOff(req *wire.Request) *call.Refusal {
	switch b := req.Body.(type) {
	case *wire.Request_Forward, *wire.Request_Unite:
	case *wire.Request_Ship:
		rows := false
		for _, p := range b.Ship.GetPieces() {
			rows = rows || len(p.GetRows()) > 0
		}
		if !rows {
			return nil
		}
	default:
		return nil
	}
	if !n.disk.crowded() {
		return nil
	}
	return call.Busy("no room on the disk by this peer's own limit", diskRetry)
}
