package format

import (
	"encoding/binary"

	"github.com/echo-node/echo-node/store"
)

// ExpandsTo returns the claimed expanded size of a packed value, as ApplyLog counts it.
func ExpandsTo(value []byte, name byte) int {
	if name == NameKey || name == NameLink || name == NameUnit || IsItem(Table(name)) && !IsPacked(Table(name)) ||
		len(value) < 2 {
		return 0
	}
	if name == NameCapture {
		row, body, err := CutCapture(value)
		if err != nil {
			return 0
		}
		return ExpandsTo(row, NameRecord) + ExpandsTo(body, NameRecord)
	}
	if value[1] == PackZstd {
		n, _ := binary.Uvarint(value[2:])
		return int(n)
	}
	return len(value) - 2
}

// Admission returns the state that a Key had when it was admitted.
func (k KeyState) Admission() KeyState {
	at := k.Admitted
	if at.IsZero() {
		at = k.Fetched
	}
	return KeyState{State: store.StatePending, Seed: k.Seed, At: at, Priority: k.Priority, Depth: k.Depth,
		Seq: k.Seq, Admitted: k.Admitted, Referrer: k.Referrer}
}
