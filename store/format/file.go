package format

import (
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Files of accounts. A post or a profile names files elsewhere (Media). Who wants
// them has them admitted as links of the account's commit, as Keys of their own,
// ACCOUNT/media/URL (partition.KindFile): in the account's slice, of the Site that
// has them. So a file is fetched by the account's owner at the pace of its host, its
// exchange is a capture like any other, its body is there once in the slice whatever
// the URLs (doc.go, "Versions and bodies"), and all of it is copied and handed over
// with the account.
//
// Being in one slice is what makes deletions sure: the batch that writes a tombstone,
// a post or a profile that names a file no more, the wish not to be archived, or that
// the account is gone, withdraws the files that nothing else of the account names (I3). A
// withdrawn Key is gone with Reason withdrawn, and has neither record nor captures:
// every replica that learns the state drops them, and an exchange that was under way is
// not taken. That other accounts name the same URL, or have the same bytes, is their own.
//
// A file is admitted only by a batch in which its account's post or profile names it, and
// by a redirect of such a file; a withdrawn one is due again when it is named again.

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
