package wire

// maxOverride is the longest override, as JSON, in bytes.
const maxOverride = 64 << 10

// validate checks that there is an override within the limit. The receiver decodes it.
func (m *Overrule) validate() error {
	if m == nil || len(m.Override) == 0 {
		return ErrNoBody
	}
	if len(m.Override) > maxOverride {
		return over("bytes of an override", len(m.Override), maxOverride)
	}
	return nil
}
