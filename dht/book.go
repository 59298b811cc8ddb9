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

	"github.com/echo-node/echo-node/dht/life"
	"github.com/echo-node/echo-node/dht/member"
	"github.com/echo-node/echo-node/partition"
)

// The book is a file with the members last seen. With it a peer finds the swarm again even if its
// join addresses no longer work.
const (
	bookFile     = "peers.json"
	bookInterval = 10 * time.Second // between two checks whether the members changed
	maxBook      = 256              // members in the file
	maxBookBytes = 512 << 10        // bytes read of the file
)

// bookEntry is one member in the book, which is a JSON array of entries.
type bookEntry struct {
	ID    string   `json:"id"`
	Addrs []string `json:"addrs"`
	// Met has those of Addrs at which this peer met the member. It is null in the book of an
	// earlier version of the program. Such addresses may be invented.
	Met []string `json:"met"`
}

// readBook returns the members of the last run, or none if there is no book or it cannot be read.
// It tells the guard which addresses held before. The others may be tried a few times.
func (j *joiner) readBook() []peer.AddrInfo {
	if j.opts.Dir == "" {
		return nil
	}
	entries, err := readEntries(filepath.Join(j.opts.Dir, bookFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		j.log.Warn("the list of known peers cannot be read, doing without", "file", bookFile, "err", err)
	}
	var out []peer.AddrInfo
	for _, e := range entries[:min(len(entries), maxBook)] {
		info, ok := member.AddrInfo(partition.Member{ID: e.ID, Addrs: e.Addrs})
		if !ok || info.ID == j.self {
			continue
		}
		if e.Met == nil {
			j.guard.Vouch([]peer.AddrInfo{info})
		} else if met, ok := member.AddrInfo(partition.Member{ID: e.ID, Addrs: e.Met}); ok {
			j.guard.Reached([]peer.AddrInfo{met})
		}
		out = append(out, info)
	}
	return out
}

// readEntries reads at most maxBookBytes of a book. It returns the entries before an error, too.
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

// bookLoop writes the book when the members changed, and once more at the end of ctx. It does not
// write while this peer is alone, because the last list is then more useful.
func (j *joiner) bookLoop(ctx context.Context) {
	if j.opts.Dir == "" {
		return
	}
	var written uint64 // no View has this digest; the members may be there before this loop starts
	for {
		goesOn := life.Sleep(ctx, bookInterval)
		if v := j.zones.View(); v.Digest() != written && len(v.Members()) > 1 { // see above: not while alone
			if err := j.writeBook(v); err != nil {
				j.log.Warn("the list of known peers cannot be written", "file", bookFile, "err", err)
			}
			written = v.Digest()
		}
		if !goesOn {
			return
		}
	}
}

// writeBook durably writes up to maxBook members of v.
func (j *joiner) writeBook(v partition.View) error {
	var entries []bookEntry
	for _, m := range v.Members() {
		if m.ID != j.self.String() && len(entries) < maxBook {
			e := bookEntry{ID: m.ID, Addrs: m.Addrs, Met: m.Addrs}
			if info, ok := member.AddrInfo(m); ok && j.guard.Connections() {
				e.Met = []string{}
				for _, a := range j.guard.Met(info.ID, info.Addrs) {
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
	return writeFile(filepath.Join(j.opts.Dir, bookFile), append(b, '\n'))
}
