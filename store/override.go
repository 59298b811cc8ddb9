package store

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// MaxOverrides is how many of one Key are kept, the latest.
const MaxOverrides = 256

// Override is a person's word on whether an account belongs. All that were ever given
// of an account are kept, beside its record, by every replica; the last one holds.
type Override struct {
	V       int           `json:"v"`
	Key     partition.Key `json:"key"`
	Verdict string        `json:"verdict"` // in, out, undecided, or "" = the judge's again
	By      string        `json:"by"`      // who said so
	Why     string        `json:"why,omitempty"`
	At      time.Time     `json:"at"`
	Peer    string        `json:"peer,omitempty"` // that it was said to
}

// OverrideVersion is the version of the form of an Override (field "v").
const OverrideVersion = 1

// ErrOverride is wrapped by what is wrong with an Override.
var ErrOverride = errors.New("not an override")

// Check brings o within the caps, or says what is wrong with it.
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

// Part is the end of the key of o's row: in order of time.
func (o *Override) Part() string {
	sum := sha256.Sum256([]byte(o.Verdict + "\x00" + o.By + "\x00" + o.Why))
	return string(append(TimePart(o.At), sum[:8]...))
}
