package store

import (
	"fmt"

	"github.com/echo-node/echo-node/partition"
)

// Check returns an error if a cannot be stored.
func (a Admission) Check(site partition.Site) error {
	if err := CheckKey(a.Key, site); err != nil {
		return err
	}
	if len(a.Referrer) > MaxKeyBytes {
		return fmt.Errorf("referrer of %d bytes, at most %d", len(a.Referrer), MaxKeyBytes)
	}
	if a.Depth < 0 || a.Depth > MaxDepth {
		return fmt.Errorf("depth %d, 0 to %d", a.Depth, MaxDepth)
	}
	if a.Priority < 0 || a.Priority > 255 {
		return fmt.Errorf("priority %d, 0 to 255", a.Priority)
	}
	return nil
}
