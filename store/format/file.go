package format

import (
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// A file has a record and a capture only while its Key is done. So replicas that get the rows of
// its changes late, or several changes as one, end in the same state.

// Withdrawn is the reason of a file's Key that nothing in its account names any more.
const Withdrawn = "withdrawn"

// Withdrawn reports whether k is the state of a withdrawn file; of is its Key.
func (k *KeyState) Withdrawn(of partition.Key) bool {
	return k.State == store.StateGone && k.Reason == Withdrawn && of.Kind() == partition.KindFile
}

// Bare reports whether a Key in that state has neither record nor capture.
func (k *KeyState) Bare(of partition.Key) bool {
	return k.State == store.StatePlaced || k.State != store.StateDone && of.Kind() == partition.KindFile
}

// OfFile reports whether a row is of a file; rest is its key after the slice.
func OfFile(rest []byte) bool {
	_, k, ok := CutSite(rest)
	return ok && partition.Key(k).Kind() == partition.KindFile
}
