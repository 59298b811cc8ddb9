package node

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/call"
	"github.com/echo-node/echo-node/node/search"
	"github.com/echo-node/echo-node/store/index"
)

// Options.MaxDisk is a cap on what du says of the data directory: the store and its log, the
// index, the trash, all of it. The store and the index write anew what they have before they
// delete it, both at once and all of it where there is little: as much as is used is kept free for that. No fetch
// begins where what is used, that room and what may come all the same would be above the cap. The swarm learns of it as
// a stop (followLimits), so that others take the slices. Copies of slices and links are taken for longer, and put off
// where what is used and that room would be above the cap. Nothing is dropped but the trash, which gets a tenth of the
// cap at most.
const (
	// of the room: the store and the index write no more than that at once
	diskRoomMost  = 512<<20 + index.MaxMerge*diskRecord
	diskComes     = 5       // an n-th of the cap is for what comes all the same,
	diskComesMost = 1 << 30 // and no more than that
	diskBack      = 10      // an n-th of the cap below, fetching begins again
	diskTrash     = 10      // an n-th of the cap is the most that the trash may have
	diskEvery     = 200 * time.Millisecond
	diskRecord    = 16 << 10 // what a record takes in the index, about, before its segments are merged
	diskCost      = 50       // the directory is looked at for at most an n-th of the time
	diskRetry     = 5 * time.Second
)

// diskGauge is how much of the disk the data directory takes. Safe for concurrent use.
type diskGauge struct {
	dir   string
	most  int64        // 0 = no cap
	other func() int64 // says it instead, where the store is in memory
	owed  func() int64 // what is to be written yet of what is here; nil = nothing

	mu   sync.Mutex
	next time.Time
	used int64
	held bool // at the cap, and not yet well below it
}

func (o Options) newDiskGauge() *diskGauge { return &diskGauge{dir: o.Dir, most: o.MaxDisk} }

// toCome is what is used, and what follows of it: an index that lags behind the crawl still grows
// when the crawl stands.
func (g *diskGauge) toCome() int64 {
	used := g.use()
	if g.owed != nil {
		used += g.owed()
	}
	return used
}

// diskOwed is diskGauge.owed: of what the index lags behind, and of fetches that may be under way.
func (n *Node) diskOwed() int64 {
	return (int64(search.Lag(n.store, n.index)) + int64(n.o.Workers)) * diskRecord
}

// use is what is used, a moment old at most, or a little more where there are very many files.
func (g *diskGauge) use() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if now.Before(g.next) {
		return g.used
	}
	if g.other != nil {
		g.used = g.other()
	} else if used, err := allocated(g.dir); err == nil {
		g.used = used
	}
	g.next = now.Add(max(diskEvery, diskCost*time.Since(now)))
	return g.used
}

func diskRoom(used int64) int64 { return min(used, diskRoomMost) }

// full says in words that nothing is to be fetched; "" while there is room.
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

// crowded says that not even what others send has room now.
func (g *diskGauge) crowded() bool {
	if g.most == 0 {
		return false
	}
	used := g.use()
	return used+diskRoom(used) >= g.most
}

// putsOff refuses for now what would make the store of a peer that is at its cap grow. Links stay in
// their senders' outboxes, copies and logs at the owners.
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

// allocated is what the files below dir take on the disk, each of several links once.
func allocated(dir string) (sum int64, err error) {
	seen := map[fileID]bool{}
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return ignoreGone(err)
		}
		info, err := d.Info()
		if err != nil {
			return ignoreGone(err)
		}
		bytes, id, shared := onDisk(info)
		if shared && !d.IsDir() {
			if seen[id] {
				return nil
			}
			seen[id] = true
		}
		sum += bytes
		return nil
	})
	return sum, err
}
