package member

import (
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/echo-node/echo-node/partition"
)

// AddrInfo is where m says that it can be reached; false when its id is no peer id.
func AddrInfo(m partition.Member) (peer.AddrInfo, bool) {
	p, err := peer.Decode(m.ID)
	if err != nil {
		return peer.AddrInfo{}, false
	}
	info := peer.AddrInfo{ID: p}
	for _, text := range m.Addrs {
		if a, err := ma.NewMultiaddr(text); err == nil {
			info.Addrs = append(info.Addrs, a)
		}
	}
	return info, true
}
