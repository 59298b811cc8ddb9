package nodetest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"
	mocknet "github.com/libp2p/go-libp2p/p2p/net/mock"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/echo-node/echo-node/partition"
)

// Stranger returns a bare host that is linked with every living peer, also after restarts. It
// is no member. The network closes it.
func (s *Sim) Stranger(key crypto.PrivKey) host.Host {
	s.t.Helper()
	s.mu.Lock()
	n := len(s.strangers) + 1
	s.mu.Unlock()
	addr, err := ma.NewMultiaddr(fmt.Sprintf("/ip4/127.66.%d.%d/tcp/4001", n/250, n%250+1))
	if err != nil {
		s.t.Fatal(err)
	}
	h, err := s.net.AddPeer(key, addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	s.strangers = append(s.strangers, h)
	s.mu.Unlock()
	s.relink()
	return h
}

// linkStrangers links every stranger with each living peer, and with each other. The caller
// holds s.mu.
func (s *Sim) linkStrangers() {
	for i, h := range s.strangers {
		var others []peer.ID
		for _, p := range s.Peers {
			if p.alive() {
				others = append(others, p.id)
			}
		}
		for _, o := range s.strangers[:i] {
			others = append(others, o.ID())
		}
		for _, id := range others {
			if s.net.Host(h.ID()) == nil || s.net.Host(id) == nil || len(s.net.LinksBetweenPeers(h.ID(), id)) > 0 {
				continue
			}
			l, err := s.net.LinkPeers(h.ID(), id)
			if err != nil {
				s.t.Error(err)
				continue
			}
			l.SetOptions(mocknet.LinkOptions{Latency: s.o.Latency})
		}
	}
}

// Charter returns the swarm's charter. Before the first Add it is empty.
func (s *Sim) Charter() partition.Charter { return s.charter }

// Host returns the host of p's present life, or nil while p is down. Messages sent from it come
// from p.
func (p *SimPeer) Host() host.Host {
	if l := p.life.Load(); l != nil && !l.dead.Load() {
		return l.host
	}
	return nil
}

// PeerID returns p's id as a libp2p type.
func (p *SimPeer) PeerID() peer.ID { return p.id }

// Addr returns p's address with its id, for Options.Join.
func (p *SimPeer) Addr() string { return p.addr.String() + "/p2p/" + p.ID }

// Rows are all rows of a store, by their keys.
type Rows map[string]string

// Rows returns every row of p's store that would be on p's disk if p stopped now, including
// rows that are not synced.
func (p *SimPeer) Rows() (Rows, error) {
	p.s.mu.Lock()
	d := p.disk
	p.s.mu.Unlock()
	left, err := d.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: p.s.dice()})
	if err != nil {
		return nil, err
	}
	return ReadRows(left.MemFS, p.Name+"/store/pebble")
}

// ReadRows reads every row of the store whose Pebble directory is dir. No other code may have
// it open.
func ReadRows(fs vfs.FS, dir string) (Rows, error) {
	db, err := pebble.Open(dir, &pebble.Options{FS: fs, ReadOnly: true, Logger: silent{}})
	if err != nil {
		return nil, err
	}
	out := Rows{}
	it, err := db.NewIter(nil)
	if err != nil {
		return nil, err
	}
	for ok := it.First(); ok; ok = it.Next() {
		v, err := it.ValueAndErr()
		if err != nil {
			return nil, err
		}
		out[string(it.Key())] = string(v)
	}
	if err := it.Close(); err != nil {
		return nil, err
	}
	return out, db.Close()
}

type silent struct{}

func (silent) Infof(string, ...any)  {}
func (silent) Errorf(string, ...any) {}
func (silent) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf(format, args...))
}

// Tables whose rows have no slice, and the prefixes of the two tables of names; see the store's
// layout.
const (
	tableMeta  = 0x00
	tableValue = 0x01
	unsliced   = "LNOW"
	keepPrefix = "\x01keep/"
)

// Change is one row that differs between two readings of a store.
type Change struct {
	Key   string
	Slice partition.Slice // 0: the row belongs to no slice
	Was   string          // "" = the row did not exist
	Is    string          // "" = the row does not exist any more
}

func (c Change) String() string {
	return fmt.Sprintf("%.80q of slice %s: was %.200q, is %.200q", c.Key, c.Slice, c.Was, c.Is)
}

// Changes returns the rows in which two readings differ, in order, without those that an idle
// peer writes by itself.
func (r Rows) Changes(later Rows) []Change {
	all := maps.Clone(r)
	maps.Copy(all, later)
	var out []Change
	for _, k := range slices.Sorted(maps.Keys(all)) {
		if was, is := r[k], later[k]; was != is && !Restless(k) {
			out = append(out, Change{Key: k, Slice: SliceOfRow(k), Was: was, Is: is})
		}
	}
	return out
}

// Restless reports whether a row changes at a peer that gets no requests: the list of members,
// and how far sequence numbers are reserved.
func Restless(key string) bool {
	return key == string([]byte{tableValue})+"territory" || key == string([]byte{tableMeta})+"seq"
}

// SliceOfRow returns the slice of a row; 0: it belongs to none.
func SliceOfRow(key string) partition.Slice {
	switch {
	case strings.HasPrefix(key, keepPrefix):
		s, err := partition.ParseSlice(strings.TrimPrefix(key, keepPrefix))
		if err != nil {
			return 0
		}
		return s
	case len(key) < 9 || key[0] == tableMeta || key[0] == tableValue || bytes.IndexByte([]byte(unsliced), key[0]) >= 0:
		return 0
	}
	return partition.Slice(binary.BigEndian.Uint64([]byte(key[1:9])))
}

// Agreement reports whether the row says which peers keep a slice.
func (c Change) Agreement() bool { return strings.HasPrefix(c.Key, keepPrefix) }

// Transient reports whether the row's table has rows that come and go with the crawl: what is
// due, the outbox, the change log.
func (c Change) Transient() bool { return strings.IndexByte("DOLXGH", c.Key[0]) >= 0 }

// AtEnd registers f to run before the Sim's own parts end. The last one registered runs first.
func (s *Sim) AtEnd(f func()) { s.ends = append(s.ends, f) }

// Retire makes sure that no peer joins by the address of p, which is down and will not start
// again.
func (s *Sim) Retire(p *SimPeer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.retired == nil {
		s.retired = map[*SimPeer]bool{}
	}
	s.retired[p] = true
}

func (s *Sim) isRetired(p *SimPeer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.retired[p]
}
