package store

import (
	"errors"
	"fmt"
	"strings"

	"github.com/echo-node/echo-node/partition"
)

// Limits. A Key, a site or a message above them is refused.
const (
	MaxKeyBytes    = 8 << 10  // of a Key, text
	MaxSiteBytes   = 1 << 10  // of a Site, text
	MaxRecordBytes = 3 << 20  // of a Record, as JSON: it fits a message between peers (Record.Fit)
	OldRecordBytes = 16 << 20 // of a Record that an earlier version wrote or sends; cut on reading
	MaxReason      = 512      // bytes kept of Due.Reason
	MaxHeader      = 1 << 10  // bytes kept of an ETag, Last-Modified or digest
	MaxDepth       = 1 << 20
	MaxAttempts    = 1 << 20
)

// CheckKey returns an error if k cannot be a row. Callers normally get k from the parsers of
// partition; this is the last check before the disk.
func CheckKey(k partition.Key, site partition.Site) error {
	switch {
	case k == "":
		return errors.New("empty key")
	case len(k) > MaxKeyBytes:
		return fmt.Errorf("key of %d bytes, at most %d", len(k), MaxKeyBytes)
	case len(site) > MaxSiteBytes:
		return fmt.Errorf("site of %d bytes, at most %d", len(site), MaxSiteBytes)
	case strings.IndexByte(string(k), 0) >= 0 || strings.IndexByte(string(site), 0) >= 0:
		return errors.New("key with a zero byte")
	}
	return nil
}
