package wire

import "fmt"

// validate checks that the request has either a key or fingerprints. It names slices or a zone, but
// not both.
func (m *Copies) validate() error {
	if m == nil {
		return ErrNoBody
	}
	if len(m.Slices) > MaxSlices {
		return over("slices of a question for copies", len(m.Slices), MaxSlices)
	}
	if err := checkZone(m.Zone); err != nil {
		return err
	}
	if m.Zone != 0 && len(m.Slices) > 0 {
		return fmt.Errorf("copies in a zone and in slices: %w", ErrMalformed)
	}
	if len(m.Prints) > MaxPrints {
		return over("prints", len(m.Prints), MaxPrints)
	}
	for _, p := range m.Prints {
		if len(p) > MaxWords {
			return over("bytes of a print", len(p), MaxWords)
		}
	}
	if (m.Key == "") == (len(m.Prints) == 0) {
		return fmt.Errorf("copies of a key and %d prints: %w", len(m.Prints), ErrMalformed)
	}
	if err := checkText("key of copies", m.Key, MaxKey); err != nil {
		return err
	}
	return checkText("post of copies", m.Post, MaxText)
}

// validate checks the numbers of copies and slices, and each copy.
func (m *CopiesAnswer) validate() error {
	if m == nil {
		return ErrNoBody
	}
	if len(m.Found) > MaxCopies {
		return over("copies", len(m.Found), MaxCopies)
	}
	if len(m.Missing) > MaxSlices {
		return over("missing slices", len(m.Missing), MaxSlices)
	}
	for _, c := range m.Found {
		if err := c.validate(); err != nil {
			return err
		}
	}
	return nil
}

// validate checks the key and the lengths. An empty fingerprint is valid: such a text has no
// copies.
func (m *Copy) validate() error {
	if err := checkKey("key of a copy", m.GetKey()); err != nil {
		return err
	}
	if len(m.Print) > MaxWords {
		return over("bytes of a print", len(m.Print), MaxWords)
	}
	for _, s := range []string{m.Post, m.Title, m.Canonical, m.Why} {
		if err := checkText("text of a copy", s, MaxText); err != nil {
			return err
		}
	}
	return checkText("peer of a copy", m.Peer, MaxPeerID)
}
