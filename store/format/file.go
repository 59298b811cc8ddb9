package format

import (
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Of a file there is a record and a capture only while its Key is done: that is how
// replicas that get the rows of its changes late, or several as one, come to the same.

// Withdrawn is the reason of a file's Key that nothing of its account names any more.
const Withdrawn = "withdrawn"

func (k *KeyState) Withdrawn(of partition.Key) bool {
	return k.State == store.StateGone && k.Reason == Withdrawn && of.Kind() == partition.KindFile
}

// Bare says whether there is neither record nor capture of a Key in that state.
func (k *KeyState) Bare(of partition.Key) bool {
	return k.State == store.StatePlaced || k.State != store.StateDone && of.Kind() == partition.KindFile
}

// OfFile says whether what follows the slice in a row's key is of a file.
func OfFile(rest []byte) bool {
	_, k, ok := CutSite(rest)
	return ok && partition.Key(k).Kind() == partition.KindFile
}
