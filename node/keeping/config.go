package keeping

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/echo-node/echo-node/partition"
)

// Limits of a Config.
const (
	MaxKeepers = 7  // as partition.Charter.Replicas
	MaxStarts  = 32 // generations back that a keeper can follow on from without a snapshot
	maxID      = 128
	MaxGen     = 1 << 40 // generations of a fork
	MaxEpoch   = 1 << 32 // adoptions of a slice
	// MaxGenStep and MaxEpochStep are the most that a word of another peer moves
	// what is known here: who was away for longer than that many changes of a slice
	// needs a new data directory.
	MaxGenStep   = 1 << 20
	MaxEpochStep = 1 << 10
)

// Start is where the log of a generation begins: after Pos.
type Start struct {
	Gen uint64 `json:"g"`
	Pos uint64 `json:"p"`
}

// Config says who keeps a slice. Configs of one slice are totally ordered by
// (Epoch, Fork, Gen); two with the same three are the same Config.
type Config struct {
	Epoch   uint64   `json:"e,omitempty"` // counts adoptions of an orphan
	Fork    string   `json:"f,omitempty"` // who adopted it
	Gen     uint64   `json:"n"`           // counts agreed changes since
	Owner   string   `json:"o"`           // one of Keepers
	Keepers []string `json:"k"`
	Starts  []Start  `json:"s,omitempty"` // ascending by Gen, this generation's last
	// Heard is not agreed. It is one more than the generation at which the peer that
	// knows this Config entered its fork by hearsay, 0 if it never did: the word of
	// that peer counts only with those who know that generation. See hear.go.
	Heard uint64 `json:"h,omitempty"`
}

// First is the Config that every slice begins with.
func First(founder string) Config {
	return Config{Owner: founder, Keepers: []string{founder}}
}

// Compare orders Configs of one slice.
func (c Config) Compare(d Config) int {
	if x := cmp.Compare(c.Epoch, d.Epoch); x != 0 {
		return x
	}
	if x := cmp.Compare(c.Fork, d.Fork); x != 0 {
		return x
	}
	return cmp.Compare(c.Gen, d.Gen)
}

// SameFork says whether two Configs are of one chain.
func (c Config) SameFork(d Config) bool { return c.Epoch == d.Epoch && c.Fork == d.Fork }

// Has says whether id keeps.
func (c Config) Has(id string) bool { return slices.Contains(c.Keepers, id) }

// Quorum is the size of a majority of the keepers.
func (c Config) Quorum() int { return len(c.Keepers)/2 + 1 }

// Next is the successor of c with the given owner and keepers, whose log begins
// after head. That may be below where c's own began, when its owner died with
// what nobody else had: then no earlier log is the successor's above head either.
func (c Config) Next(owner string, keepers []string, head uint64) Config {
	starts := append(slices.Clone(c.Starts), Start{c.Gen + 1, head})
	for i := range starts {
		starts[i].Pos = min(starts[i].Pos, head)
	}
	if len(starts) > MaxStarts {
		starts = starts[len(starts)-MaxStarts:]
	}
	return Config{Epoch: c.Epoch, Fork: c.Fork, Gen: c.Gen + 1, Owner: owner, Keepers: slices.Clone(keepers), Starts: starts}
}

// Adopted is the Config by which id adopts the orphan c alone. Of an Epoch of
// MaxEpoch it is one that Validate refuses: Machine.Adopt then leaves the slice.
func (c Config) Adopted(id string, head uint64) Config {
	return Config{Epoch: c.Epoch + 1, Fork: id, Owner: id, Keepers: []string{id}, Starts: []Start{{0, head}}}
}

// common is up to where the log of generation gen, of the same fork, is also
// the log of c: pos or less. false when c no longer knows.
func (c Config) common(gen, pos uint64) (uint64, bool) {
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

// same says whether c and d are one Config. Of those that were agreed it is enough
// that Compare says so; who lies can give a name to another.
func (c Config) same(d Config) bool {
	return c.Compare(d) == 0 && c.Owner == d.Owner && slices.Equal(c.Keepers, d.Keepers)
}

// hash is of what makes c this Config of that slice, and of what it says: a lie
// does not pass for the Config whose name it has.
func (c Config) hash(s partition.Slice) uint64 {
	b := make([]byte, 0, 24+len(c.Fork))
	b = binary.BigEndian.AppendUint64(b, uint64(s))
	b = binary.BigEndian.AppendUint64(b, c.Epoch)
	b = binary.BigEndian.AppendUint64(b, c.Gen)
	b = append(append(append(b, c.Fork...), 0), c.Owner...)
	for _, k := range c.Keepers {
		b = append(append(b, 0), k...)
	}
	return xxhash.Sum64(b)
}

// Validate refuses what no peer makes.
func (c Config) Validate() error {
	switch {
	case len(c.Keepers) == 0 || len(c.Keepers) > MaxKeepers:
		return fmt.Errorf("%d keepers, 1 to %d", len(c.Keepers), MaxKeepers)
	case !c.Has(c.Owner):
		return errors.New("the owner is no keeper")
	case len(c.Starts) > MaxStarts:
		return fmt.Errorf("%d generations, at most %d", len(c.Starts), MaxStarts)
	case len(c.Fork) > maxID:
		return errors.New("fork is no peer id")
	case c.Gen > MaxGen || c.Epoch > MaxEpoch:
		return fmt.Errorf("generation %d or epoch %d out of range, at most %d and %d", c.Gen, c.Epoch, uint64(MaxGen), uint64(MaxEpoch))
	case (c.Epoch == 0) != (c.Fork == ""):
		return errors.New("an epoch without the peer that began it, or the other way round")
	case c.Epoch > 0 && c.Gen == 0 && (len(c.Keepers) != 1 || c.Owner != c.Fork):
		return errors.New("an adopted slice begins with another keeper than who adopted it")
	}
	for i, k := range c.Keepers {
		if k == "" || len(k) > maxID {
			return errors.New("a keeper is no peer id")
		}
		if slices.Contains(c.Keepers[:i], k) {
			return errors.New("a keeper twice")
		}
	}
	for i, s := range c.Starts {
		if s.Gen > c.Gen || i > 0 && (s.Gen <= c.Starts[i-1].Gen || s.Pos < c.Starts[i-1].Pos) {
			return errors.New("generations out of order")
		}
	}
	return nil
}

// follows says why d cannot be what c became: a later generation of its fork,
// or what came of the slice after it was adopted. Both are valid.
func (c Config) follows(d Config) error {
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
	if d.SameFork(c) && d.Gen == c.Gen+1 && !slices.Equal(c.Next(d.Owner, d.Keepers, d.Starts[len(d.Starts)-1].Pos).Starts, d.Starts) {
		return errors.New("its log does not go on from the one before")
	}
	return nil
}

// counts says whether the word of a keeper of c that d is in force counts with
// one who knows c: it does not if that keeper has d itself from hearsay.
func (c Config) counts(d Config) bool {
	return d.Heard == 0 || d.SameFork(c) && d.Heard <= c.Gen+1
}

// Ballot orders the proposals for one successor. The zero Ballot is none.
type Ballot struct {
	N  uint64 `json:"n"` // 1 is the present owner's alone
	By string `json:"b"`
}

// Compare orders Ballots.
func (b Ballot) Compare(d Ballot) int {
	if x := cmp.Compare(b.N, d.N); x != 0 {
		return x
	}
	return cmp.Compare(b.By, d.By)
}
