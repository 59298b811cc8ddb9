package store

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// MaxOverrides is the maximum number of stored overrides of one Key, the latest.
const MaxOverrides = 256

// Override is a person's decision on whether an account belongs. All overrides of an account are
// stored besides its record, by every replica; the last one is valid.
type Override struct {
	V       int           `json:"v"`
	Key     partition.Key `json:"key"`
	Verdict string        `json:"verdict"` // in, out, undecided, or "" = the judge decides again
	By      string        `json:"by"`      // the person
	Why     string        `json:"why,omitempty"`
	At      time.Time     `json:"at"`
	Peer    string        `json:"peer,omitempty"` // the peer that received it
}

// What the message of an override may ask for besides a verdict. Neither is stored.
const (
	VerdictRelease = "release" // visit a Key in quarantine again
	VerdictAgain   = "again"   // visit a known Key now
)

// OverrideVersion is the version of the Override format (field "v").
const OverrideVersion = 1

// ErrOverride is wrapped by the error for an invalid Override.
var ErrOverride = errors.New("not an override")

// Check cuts o to the limits, or returns an error if o is invalid.
func (o *Override) Check() error {
	o.By, o.Why, o.Peer = Clip(o.By, MaxHeader), Clip(o.Why, MaxHeader), Clip(o.Peer, MaxHeader)
	o.At = o.At.UTC().Truncate(Tick)
	switch {
	case o.V != OverrideVersion:
		return fmt.Errorf("%w: version %d", ErrOverride, o.V)
	case o.Key.Kind() != partition.KindAccount:
		return fmt.Errorf("%w: %.100q is no account", ErrOverride, o.Key)
	case o.By == "" || o.At.IsZero():
		return fmt.Errorf("%w: nobody said it, or never", ErrOverride)
	case !slices.Contains([]string{"", "in", "out", "undecided"}, o.Verdict):
		return fmt.Errorf("%w: verdict %.40q is not in, out, undecided or empty", ErrOverride, o.Verdict)
	}
	return nil
}

// Part returns the end of the key of o's row; parts sort in the order of time.
func (o *Override) Part() string {
	sum := sha256.Sum256([]byte(o.Verdict + "\x00" + o.By + "\x00" + o.Why))
	return string(append(TimePart(o.At), sum[:8]...))
}
