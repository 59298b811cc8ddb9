package partition

// Mode is how the crawl space is cut.
type Mode string

// The two modes of ARCHITECTURE.md.
const (
	ModeHash Mode = "hash"
	ModeGeo  Mode = "geo"
)

// CharterVersion is the version of the Charter's own format.
const CharterVersion = 1

// KeyProfile is the version of the canonicalisation profile that this program
// implements; peers that differ in it would disagree about Keys.
const KeyProfile = 1

// WireVersion is the version of the messages between peers.
const WireVersion = 1

// Charter is what all peers of a swarm must agree on, made by its first peer
// and fetched by those who join. Its Digest is part of the protocol prefix.
type Charter struct {
	V         int            `json:"v"`         // CharterVersion
	Name      string         `json:"name"`      // of the swarm, 1 to 64 of [a-z0-9.-]
	Founder   string         `json:"founder"`   // peer id of the first peer; its key signs changes
	Profile   int            `json:"profile"`   // KeyProfile
	Wire      int            `json:"wire"`      // WireVersion
	Mode      Mode           `json:"mode"`      // hash or geo
	SliceBits int            `json:"slicebits"` // 2^SliceBits hash slices, 1 to 20, default 12
	CellLevel int            `json:"celllevel"` // S2 level of geo slices, default 7; 0 in hash mode
	Replicas  int            `json:"replicas"`  // keepers per slice, 1 to 7, default 3
	Fanout    map[string]int `json:"fanout"`    // service -> units an instance's accounts are spread over; 0 = every account alone
	Suffixes  string         `json:"suffixes"`  // digest of the public suffix list
	Gazetteer string         `json:"gazetteer"` // digest of the gazetteer; "" in hash mode
}

// DefaultCharter is the charter a first peer makes when nothing else is asked.
func DefaultCharter(name, founder string) Charter {
	return Charter{V: CharterVersion, Name: name, Founder: founder, Profile: KeyProfile, Wire: WireVersion,
		Mode: ModeHash, SliceBits: 12, Replicas: 3, Fanout: map[string]int{"mastodon": 1, "bluesky": 0, "twitter": 0}}
}

// Validate reports every fault of c at once, or nil.
func (c Charter) Validate() error { return nil }

// Digest is a hash over c's canonical encoding; 32 hex digits.
func (c Charter) Digest() string { return "" }

// Slice is the slice that k falls into by hash (k's registrar's slice).
func (c Charter) Slice(k Key) Slice { return 0 }

// Slices lists all slices of the swarm in order.
func (c Charter) Slices() []Slice { return nil }

// Slice is a prefix of the 64-bit space; see the package comment.
type Slice uint64

// String is "h/0a3" (hash, the prefix in hex with the number of bits when not
// a multiple of four as "h/0a3:11") or "g/TOKEN" (S2 token).
func (s Slice) String() string { return "" }
