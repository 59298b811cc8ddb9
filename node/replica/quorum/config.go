package quorum

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/echo-node/echo-node/partition"
)

// Limits of a ReplicaSet.
const (
	MaxReplicas = 7  // like partition.Charter.Replicas
	MaxStarts   = 32 // how many generations old a copy may be and still follow without a snapshot
	maxID       = 128
	MaxGen      = 1 << 40 // generations of a fork
	MaxEpoch    = 1 << 32 // adoptions of a slice
	// MaxGenStep and MaxEpochStep limit how far a statement of another peer moves what is known
	// here. A peer that was away for more changes of a slice needs a new data directory.
	MaxGenStep   = 1 << 20
	MaxEpochStep = 1 << 10
)

// Start says where the log of a generation begins: after Pos.
type Start struct {
	Gen uint64 `json:"g"`
	Pos uint64 `json:"p"`
}

// ReplicaSet names the replicas and the owner of a slice. ReplicaSets of one slice are totally
// ordered by (Epoch, Fork, Gen). Two with the same three values are the same.
type ReplicaSet struct {
	Epoch    uint64   `json:"e,omitempty"` // counts adoptions of an orphan
	Fork     string   `json:"f,omitempty"` // the peer that adopted it
	Gen      uint64   `json:"n"`           // counts agreed changes since
	Owner    string   `json:"o"`           // one of Replicas
	Replicas []string `json:"k"`
	Starts   []Start  `json:"s,omitempty"` // ascending by Gen; this generation is the last
	// Hearsay is not agreed. It is one more than the generation at which the peer that knows this
	// ReplicaSet entered its fork by hearsay. It is 0 if the peer never did. The peer's
	// statement counts only with peers that know that generation. See hear.go.
	Hearsay uint64 `json:"h,omitempty"`
}

// First returns the ReplicaSet that every slice begins with.
func First(founder string) ReplicaSet {
	return ReplicaSet{Owner: founder, Replicas: []string{founder}}
}

// Compare orders ReplicaSets of one slice.
func (c ReplicaSet) Compare(d ReplicaSet) int {
	if x := cmp.Compare(c.Epoch, d.Epoch); x != 0 {
		return x
	}
	if x := cmp.Compare(c.Fork, d.Fork); x != 0 {
		return x
	}
	return cmp.Compare(c.Gen, d.Gen)
}

// SameFork reports whether two ReplicaSets belong to the same chain.
func (c ReplicaSet) SameFork(d ReplicaSet) bool { return c.Epoch == d.Epoch && c.Fork == d.Fork }

// Has reports whether id is a replica.
func (c ReplicaSet) Has(id string) bool { return slices.Contains(c.Replicas, id) }

// Quorum returns the size of a majority of the replicas.
func (c ReplicaSet) Quorum() int { return len(c.Replicas)/2 + 1 }

// Next returns the successor of c with the given owner and replicas. Its log begins after head.
// head may be below the start of c's own log: c's owner may have died with entries that no
// other replica had. Then no earlier log is shared above head either.
func (c ReplicaSet) Next(owner string, replicas []string, head uint64) ReplicaSet {
	starts := append(slices.Clone(c.Starts), Start{c.Gen + 1, head})
	for i := range starts {
		starts[i].Pos = min(starts[i].Pos, head)
	}
	if len(starts) > MaxStarts {
		starts = starts[len(starts)-MaxStarts:]
	}
	return ReplicaSet{Epoch: c.Epoch, Fork: c.Fork, Gen: c.Gen + 1, Owner: owner, Replicas: slices.Clone(replicas),
		Starts: starts}
}

// Adopted returns the ReplicaSet with which id alone adopts the orphan c. If c has Epoch
// MaxEpoch, Validate refuses the result, and Machine.Adopt leaves the slice as it is.
func (c ReplicaSet) Adopted(id string, head uint64) ReplicaSet {
	return ReplicaSet{Epoch: c.Epoch + 1, Fork: id, Owner: id, Replicas: []string{id}, Starts: []Start{{0, head}}}
}

// common returns the position, at most pos, up to which the log of generation gen of the same
// fork is also the log of c. It returns false when c no longer knows that.
func (c ReplicaSet) common(gen, pos uint64) (uint64, bool) {
	if gen > c.Gen {
		return 0, false
	}
	if gen == c.Gen {
		return pos, true
	}
	for _, s := range c.Starts {
		if s.Gen == gen+1 {
			return min(pos, s.Pos), true
		}
	}
	return 0, false
}

// same reports whether c and d are one ReplicaSet. For agreed ReplicaSets Compare is enough,
// but a lying peer can reuse the (Epoch, Fork, Gen) of another ReplicaSet.
func (c ReplicaSet) same(d ReplicaSet) bool {
	return c.Compare(d) == 0 && c.Owner == d.Owner && slices.Equal(c.Replicas, d.Replicas)
}

// hash covers the slice, the order of c (Epoch, Fork, Gen) and its content. So a false
// ReplicaSet does not pass for the real one with the same (Epoch, Fork, Gen).
func (c ReplicaSet) hash(s partition.Slice) uint64 {
	b := make([]byte, 0, 24+len(c.Fork))
	b = binary.BigEndian.AppendUint64(b, uint64(s))
	b = binary.BigEndian.AppendUint64(b, c.Epoch)
	b = binary.BigEndian.AppendUint64(b, c.Gen)
	b = append(append(append(b, c.Fork...), 0), c.Owner...)
	for _, k := range c.Replicas {
		b = append(append(b, 0), k...)
	}
	return xxhash.Sum64(b)
}

// Validate returns an error for a ReplicaSet that no correct peer can produce.
func (c ReplicaSet) Validate() error {
	switch {
	case len(c.Replicas) == 0 || len(c.Replicas) > MaxReplicas:
		return fmt.Errorf("%d replicas, 1 to %d", len(c.Replicas), MaxReplicas)
	case !c.Has(c.Owner):
		return errors.New("the owner is no replica")
	case len(c.Starts) > MaxStarts:
		return fmt.Errorf("%d generations, at most %d", len(c.Starts), MaxStarts)
	case c.Fork != "" && !isID(c.Fork):
		return errors.New("fork is no peer id")
	case c.Gen > MaxGen || c.Epoch > MaxEpoch:
		return fmt.Errorf("generation %d or epoch %d out of range, at most %d and %d", c.Gen, c.Epoch, uint64(MaxGen),
			uint64(MaxEpoch))
	case (c.Epoch == 0) != (c.Fork == ""):
		return errors.New("an epoch without the peer that began it, or the other way round")
	case c.Epoch > 0 && c.Gen == 0 && (len(c.Replicas) != 1 || c.Owner != c.Fork):
		return errors.New("an adopted slice begins with another replica than who adopted it")
	}
	for i, k := range c.Replicas {
		if !isID(k) {
			return errors.New("a replica is no peer id")
		}
		if slices.Contains(c.Replicas[:i], k) {
			return errors.New("a replica twice")
		}
	}
	for i, s := range c.Starts {
		if s.Gen > c.Gen || i > 0 && (s.Gen <= c.Starts[i-1].Gen || s.Pos < c.Starts[i-1].Pos) {
			return errors.New("generations out of order")
		}
	}
	return nil
}

// isID reports whether s may be the id of a peer: printable ASCII, not too long.
func isID(s string) bool {
	return s != "" && len(s) <= maxID && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// follows returns an error when d cannot be what c became. Allowed are a later generation of
// c's fork, and a ReplicaSet after an adoption. Both arguments are valid.
func (c ReplicaSet) follows(d ReplicaSet) error {
	switch {
	case d.Epoch < c.Epoch || d.SameFork(c) && d.Gen < c.Gen:
		return errors.New("it is older")
	case d.Epoch-c.Epoch > MaxEpochStep:
		return fmt.Errorf("%d epochs on, at most %d", d.Epoch-c.Epoch, MaxEpochStep)
	case !d.SameFork(c):
		if d.Gen > MaxGenStep {
			return fmt.Errorf("generation %d of a new fork, at most %d", d.Gen, MaxGenStep)
		}
	case d.Gen-c.Gen > MaxGenStep:
		return fmt.Errorf("%d generations on, at most %d", d.Gen-c.Gen, MaxGenStep)
	}
	if d.Gen == 0 {
		return nil
	}
	if len(d.Starts) == 0 || d.Starts[len(d.Starts)-1].Gen != d.Gen {
		return errors.New("it does not say where its log begins")
	}
	if d.SameFork(c) && d.Gen == c.Gen+1 &&
		!slices.Equal(c.Next(d.Owner, d.Replicas, d.Starts[len(d.Starts)-1].Pos).Starts, d.Starts) {
		return errors.New("its log does not go on from the one before")
	}
	return nil
}

// counts reports whether a replica's statement that d is in force counts for a peer that knows
// c. It does not count if that replica itself has d from hearsay.
func (c ReplicaSet) counts(d ReplicaSet) bool {
	return d.Hearsay == 0 || d.SameFork(c) && d.Hearsay <= c.Gen+1
}

// Ballot orders the proposals for one successor. The zero Ballot means none.
type Ballot struct {
	N  uint64 `json:"n"` // 1 is reserved for the present owner
	By string `json:"b"`
}

// Compare orders Ballots.
func (b Ballot) Compare(d Ballot) int {
	if x := cmp.Compare(b.N, d.N); x != 0 {
		return x
	}
	return cmp.Compare(b.By, d.By)
}
