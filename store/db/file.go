package db

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/engine"
	"github.com/echo-node/echo-node/store/format"
)

// Files of accounts. A post or a profile names files elsewhere (Media). Who wants
// them has them admitted as links of the account's commit, as Keys of their own,
// ACCOUNT/media/URL (partition.KindFile): in the account's slice, of the Site that
// has them. So a file is fetched by the account's owner at the pace of its host, its
// exchange is a capture like any other, its body is there once in the slice whatever
// the URLs (store/format, "Versions and bodies"), and all of it is copied and handed over
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

// withdrawals withdraws the files of c's account that c, whose posts are written, has
// nothing name any more. was is the state of the account before.
func (t *batch) withdrawals(id format.SiteID, c store.Commit, was format.KeyState) error {
	if err := t.withdrawBrought(id, c); err != nil {
		return err
	}
	if c.Key.Kind() != partition.KindAccount {
		return nil
	}
	all := c.Next.State == store.StateGone && was.State != store.StateGone
	if c.Record == nil && !all && len(t.Left) == 0 {
		return nil
	}
	old, err := t.RecordOf(id, c.Key)
	if err != nil {
		return err
	}
	profile := old
	if c.Record != nil {
		t.Names(old, c.Record)
		profile = c.Record
		all = all || !c.Record.Archived() && (old == nil || old.Archived())
	}
	if all {
		t.Names(old, nil)
	}
	return t.withdrawUnnamed(id, c.Key, profile, all, c.Now)
}

// withdrawUnnamed withdraws the files of account that nothing names any more; see unnamed.
func (t *batch) withdrawUnnamed(id format.SiteID, account partition.Key, profile *store.Record, all bool,
	now time.Time) error {
	left, err := t.unnamed(id, account, profile, all)
	if err != nil {
		return err
	}
	for _, k := range slices.Sorted(maps.Keys(left)) {
		if err := t.withdraw(id.Slice, k, now); err != nil {
			return err
		}
	}
	return nil
}

// unnamed are the files of account that are left and that neither profile nor a post
// of it names; all: every file that was ever named, and is not withdrawn.
func (t *batch) unnamed(id format.SiteID, account partition.Key, profile *store.Record,
	all bool) (map[partition.Key]bool, error) {
	left := map[partition.Key]bool{}
	add := func(k partition.Key) error {
		st, err := t.KeyState(format.SiteID{Slice: id.Slice, Site: k.Site()}, k)
		if err == nil && !st.Withdrawn(k) {
			left[k] = true
		}
		return engine.IgnoreAbsent(err)
	}
	for k := range t.Left {
		if k.Account() != account {
			continue
		}
		if err := add(k); err != nil {
			return nil, err
		}
	}
	if !all {
		profile.Files(func(k partition.Key) { delete(left, k) })
	}
	if !all && len(left) == 0 {
		return nil, nil
	}
	err := t.PostsOf(id, account, func(p format.PostRow) (more bool, err error) {
		p.Record.Files(func(k partition.Key) {
			if all {
				err = errors.Join(err, add(k))
			} else {
				delete(left, k)
			}
		})
		return all || len(left) > 0, err
	})
	return left, err
}

// withdraw forgets a file, and where it redirected to.
func (t *batch) withdraw(sl partition.Slice, k partition.Key, now time.Time) error {
	to := partition.Key("")
	if r, err := t.s.Archive.FileRecord(sl, k); err == nil {
		to = r.Redirect
	} else if engine.IgnoreAbsent(err) != nil {
		return err
	}
	for _, k := range [...]partition.Key{k, to} {
		if k.Kind() != partition.KindFile {
			continue
		}
		id := format.SiteID{Slice: sl, Site: k.Site()}
		old, err := t.KeyState(id, k)
		if errors.Is(err, store.ErrNotExist) || err == nil && old.Withdrawn(k) {
			continue
		}
		if err != nil {
			return err
		}
		next := old.Moved(now)
		next.State, next.At, next.Attempts, next.Reason = store.StateGone, time.Time{}, 0, format.Withdrawn
		next.Etag, next.Modified, next.Digest, next.History = "", "", "", ""
		if err := t.Put(id, k, &old, next); err != nil {
			return err
		}
		if err := t.Unrecord(id, k, false); err != nil {
			return err
		}
	}
	return nil
}

// admitFile is Batch.Admit of a link to a file from a commit of c. A file that is not
// c's account's, or that c does not name, is left out.
func (t *batch) admitFile(from format.SiteID, c store.Commit, a store.Admission, fresh map[partition.Key]bool) error {
	to := format.SiteID{Slice: from.Slice, Site: a.Key.Site()}
	named := t.Named[a.Key] || c.Key.Kind() == partition.KindFile
	if !named || a.Key.Account() != c.Key.Account() || !t.s.engine.Charter().MayHold(to.Slice, a.Key) {
		return nil
	}
	old, err := t.KeyState(to, a.Key)
	if err != nil || !old.Withdrawn(a.Key) {
		if engine.IgnoreAbsent(err) == nil {
			_, err = t.Admit(to, a, c.Now, fresh)
		}
		return err
	}
	fresh[a.Key] = true
	next := old.Moved(c.Now)
	next.State, next.At, next.Reason = store.StatePending, c.Now.UTC(), ""
	return t.Put(to, a.Key, &old, next)
}
