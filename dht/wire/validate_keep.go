package wire

import "fmt"

// The messages of replication. The checks here cover only lengths and forms. Package quorum
// judges the content of a ReplicaSet, and the store judges that of a row.

// checkConfig checks one ReplicaSet, which must be present.
func checkConfig(c *Config) error {
	if c == nil {
		return ErrNoBody
	}
	if len(c.Keepers) > MaxConfigKeepers {
		return over("replicas of a config", len(c.Keepers), MaxConfigKeepers)
	}
	if len(c.Starts) > MaxConfigStarts {
		return over("generations of a config", len(c.Starts), MaxConfigStarts)
	}
	for _, s := range c.Starts {
		if s == nil {
			return ErrNoBody
		}
	}
	// Whether these are ids of peers does not matter here.
	for _, id := range append([]string{c.Fork, c.Owner}, c.Keepers...) {
		if err := checkText("peer of a config", id, MaxPeerID); err != nil {
			return err
		}
	}
	return nil
}

// checkConfigs checks a list of ReplicaSets. what names the list in errors, and there says whether
// the message is present.
func checkConfigs(what string, all []*Config, there bool) error {
	if !there {
		return ErrNoBody
	}
	if len(all) > MaxConfigs {
		return over(what, len(all), MaxConfigs)
	}
	for _, c := range all {
		if err := checkConfig(c); err != nil {
			return err
		}
	}
	return nil
}

// optional is checkConfig for a field that may be missing.
func optional(c *Config) error {
	if c == nil {
		return nil
	}
	return checkConfig(c)
}

// validate checks the ReplicaSets. A request without any is valid: its digest stands for them.
func (m *Lease) validate() error { return checkConfigs("configs of a lease", m.GetConfigs(), m != nil) }

// validate checks the refused slices and the newer ReplicaSets.
func (m *LeaseAnswer) validate() error {
	if len(m.GetRefused()) > MaxSlices {
		return over("refused slices", len(m.Refused), MaxSlices)
	}
	return checkConfigs("configs of a lease", m.GetNewer(), m != nil)
}

func (m *Configs) validate() error { return checkConfigs("configs", m.GetDecided(), m != nil) }

// validate checks the proposals. A successor must be in the slice of its base.
func (m *Ballots) validate() error {
	if m == nil {
		return ErrNoBody
	}
	if len(m.Proposals) > MaxConfigs {
		return over("proposals", len(m.Proposals), MaxConfigs)
	}
	for _, p := range m.Proposals {
		if err := checkConfig(p.GetBase()); err != nil {
			return err
		}
		if err := optional(p.Next); err != nil {
			return err
		}
		// The vote is about one slice. A successor in another one would change a slice without its
		// own vote.
		if p.Next != nil && p.Next.Slice != p.GetBase().GetSlice() {
			return fmt.Errorf("a successor in slice %d of a replica set of slice %d: %w", p.Next.Slice,
				p.GetBase().GetSlice(), ErrMalformed)
		}
		if err := checkText("ballot", p.By, MaxPeerID); err != nil {
			return err
		}
	}
	return nil
}

// validate checks the promises. They belong to the proposals by index.
func (m *BallotsAnswer) validate() error {
	if m == nil {
		return ErrNoBody
	}
	if len(m.Promises) > MaxConfigs {
		return over("promises", len(m.Promises), MaxConfigs)
	}
	for _, p := range m.Promises {
		if p == nil {
			return ErrNoBody
		}
		if err := optional(p.Newer); err != nil {
			return err
		}
		if err := optional(p.Proposal); err != nil {
			return err
		}
		for _, id := range []string{p.PromisedBy, p.AcceptedBy} {
			if err := checkText("ballot", id, MaxPeerID); err != nil {
				return err
			}
		}
	}
	return nil
}

// validate checks each log chunk. MaxRows limits the rows of all chunks together.
func (m *Ship) validate() error {
	if m == nil {
		return ErrNoBody
	}
	if len(m.Pieces) > MaxPieces {
		return over("pieces", len(m.Pieces), MaxPieces)
	}
	rows := 0
	for _, p := range m.Pieces {
		if _, ok := Piece_Kind_name[int32(p.GetKind())]; !ok || p.GetKind() == Piece_KIND_UNSPECIFIED {
			return fmt.Errorf("piece kind %d: %w", p.GetKind(), ErrMalformed)
		}
		if err := checkText("fork", p.Fork, MaxPeerID); err != nil {
			return err
		}
		// MaxRows is the limit for all chunks of the message together.
		if rows += len(p.Rows); rows > MaxRows {
			return over("rows of the pieces", rows, MaxRows)
		}
		if err := checkRows(p.Rows); err != nil {
			return err
		}
	}
	return nil
}

// validate checks the reports. They belong to the chunks by index.
func (m *ShipAnswer) validate() error {
	if m == nil {
		return ErrNoBody
	}
	if len(m.Stances) > MaxPieces {
		return over("stances", len(m.Stances), MaxPieces)
	}
	for _, s := range m.Stances {
		if s == nil {
			return ErrNoBody
		}
		if err := optional(s.Newer); err != nil {
			return err
		}
	}
	return nil
}

// validate checks the bucket, 0 to 255, and the cursor.
func (m *Compare) validate() error {
	if m == nil {
		return ErrNoBody
	}
	// A slice has 256 buckets, with 8 bytes of digest for each.
	if m.Bucket > 255 {
		return fmt.Errorf("bucket %d: %w", m.Bucket, ErrMalformed)
	}
	if len(m.After) > MaxRowKey {
		return over("cursor", len(m.After), MaxRowKey)
	}
	return optional(m.Drop)
}

// validate checks the lengths of the digests and the cursor, and the rows.
func (m *CompareAnswer) validate() error {
	if m == nil {
		return ErrNoBody
	}
	if len(m.Digests) > MaxDigests {
		return over("digests", len(m.Digests), MaxDigests)
	}
	if len(m.Next) > MaxRowKey {
		return over("cursor", len(m.Next), MaxRowKey)
	}
	return checkRows(m.Rows)
}

// validate checks the rows.
func (m *Unite) validate() error {
	if m == nil {
		return ErrNoBody
	}
	return checkRows(m.Rows)
}

// checkRows checks the number of rows and the lengths of their keys. MaxFrame limits the values.
func checkRows(rows []*Row) error {
	if len(rows) > MaxRows {
		return over("rows", len(rows), MaxRows)
	}
	for _, r := range rows {
		if len(r.GetKey()) > MaxRowKey {
			return over("row key", len(r.Key), MaxRowKey)
		}
	}
	return nil
}
