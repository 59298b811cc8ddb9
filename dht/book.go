package dht

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/echo-node/echo-node/partition"
)

// The book is the file of members last seen, so that a peer finds the swarm
// again though its join addresses are gone.
const (
	bookFile     = "peers.json"
	bookInterval = 10 * time.Second
	maxBook      = 256       // members written
	maxBookBytes = 512 << 10 // read
)

type bookEntry struct {
	ID    string   `json:"id"`
	Addrs []string `json:"addrs"`
	// Met are those of Addrs where this peer met the member; null in a book of
	// an earlier version, whose addresses may be what somebody made up.
	Met []string `json:"met"`
}

// readBook gives the members of the last run; none when there is no book.
func (d *DHT) readBook() []peer.AddrInfo {
	if d.opts.Dir == "" {
		return nil
	}
	entries, err := readEntries(filepath.Join(d.opts.Dir, bookFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.log.Warn("the list of known peers cannot be read, doing without", "file", bookFile, "err", err)
	}
	var out []peer.AddrInfo
	for _, e := range entries[:min(len(entries), maxBook)] {
		info, ok := infoOf(partition.Member{ID: e.ID, Addrs: e.Addrs})
		if !ok || info.ID == d.self {
			continue
		}
		if e.Met == nil {
			d.gate.each([]peer.AddrInfo{info}, vouched)
		} else if met, ok := infoOf(partition.Member{ID: e.ID, Addrs: e.Met}); ok {
			d.gate.each([]peer.AddrInfo{met}, reached)
		}
		out = append(out, info)
	}
	return out
}

func readEntries(path string) ([]bookEntry, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var entries []bookEntry
	err = json.NewDecoder(io.LimitReader(f, maxBookBytes)).Decode(&entries)
	return entries, err
}

// bookLoop writes the book when the members changed.
func (d *DHT) bookLoop(ctx context.Context) {
	if d.opts.Dir == "" {
		return
	}
	var written uint64 // of no view: the members may be there before this loop is
	for {
		goesOn := sleep(ctx, bookInterval)
		if v := d.View(); v.Digest() != written && len(v.Members()) > 1 { // alone, the last list is worth more
			if err := d.writeBook(v); err != nil {
				d.log.Warn("the list of known peers cannot be written", "file", bookFile, "err", err)
			}
			written = v.Digest()
		}
		if !goesOn {
			return
		}
	}
}

func (d *DHT) writeBook(v partition.View) error {
	var entries []bookEntry
	for _, m := range v.Members() {
		if m.ID != d.ID() && len(entries) < maxBook {
			e := bookEntry{ID: m.ID, Addrs: m.Addrs, Met: m.Addrs}
			if info, ok := infoOf(m); ok && d.gate != nil {
				e.Met = []string{}
				for _, a := range d.gate.holding(info.ID, info.Addrs) {
					e.Met = append(e.Met, a.String())
				}
			}
			entries = append(entries, e)
		}
	}
	b, err := json.MarshalIndent(entries, "", " ")
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(d.opts.Dir, bookFile), append(b, '\n'))
}
