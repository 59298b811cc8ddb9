package format

import (
	"github.com/echo-node/echo-node/store"
)

func (e *Encoder) hint(h store.Hint) {
	e.Byte(byte(h.Kind))
	e.uint(uint64(h.At.Unix()))
}

func (d *Decoder) hint() store.Hint {
	kind, unix := d.byte(), d.Uint(store.MaxHintTime)
	h := store.ParseHint(uint64(kind), int64(unix))
	d.Bad = d.Bad || h.Kind == 0
	return h
}
