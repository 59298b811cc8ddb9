package store

import (
	"errors"
	"fmt"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// Tick is the resolution of stored times.
const Tick = time.Microsecond

// Check returns an error if c is over a limit or cannot be stored.
func (c Commit) Check(site partition.Site) error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if err := CheckKey(c.Key, site); err != nil {
		errs = append(errs, err)
	}
	if c.Next.State < StatePending || c.Next.State > StateRefused {
		bad("state %d is none of 1 to 4", c.Next.State)
	}
	if c.Next.Attempts < 0 || c.Next.Attempts > MaxAttempts {
		bad("attempts %d, 0 to %d", c.Next.Attempts, MaxAttempts)
	}
	if len(c.Next.History) > MaxHistory {
		bad("a history of %d bytes, at most %d", len(c.Next.History), MaxHistory)
	}
	if c.Now.IsZero() {
		bad("no time (Now)")
	}
	if r := c.Record; r != nil {
		if r.Key != c.Key {
			bad("the record is of %s", r.Key)
		}
		if r.V != RecordVersion {
			bad("record version %d, this program writes %d", r.V, RecordVersion)
		}
		if len(r.Digest) > MaxHeader {
			bad("digest of %d bytes, at most %d", len(r.Digest), MaxHeader)
		}
	}
	if err := c.checkSocial(); err != nil {
		errs = append(errs, err)
	}
	if c.Site != nil {
		if c.Site.Site != site {
			bad("the site state belongs to %s, the key to %s", c.Site.Site, site)
		} else if err := c.Site.Check(); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
