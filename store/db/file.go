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

// Files of accounts. A post or a profile names files on other servers (Media). A crawler that wants
// them admits them as links of the account's commit. They are Keys of their own, ACCOUNT/media/URL
// (partition.KindFile), in the account's slice and of the Site that serves them. So the account's
// owner fetches a file at the pace of its host. Its exchange is a capture like any other, and its
// body is stored once in the slice, whatever the URLs (store/format, "Versions and bodies"). All of
// it is replicated and handed over together with the account.
//
// Because all is in one slice, deletions are reliable. A batch withdraws the files that nothing
// else of the account names (I3). It does this when it writes a tombstone, or a post or profile
// that no longer names a file. It also does this when the account is gone or does not want to be
// archived. A withdrawn Key is in StateGone with the Reason format.Withdrawn, and has no record and
// no captures. Every replica that receives this state deletes them too, and a fetch of the file in
// progress is not stored. Other accounts that name the same URL, or have the same bytes, have their
// own files.
//
// A file is admitted only by a batch in which a post or the profile of its account names it. A
// redirect of such a file also admits its target. A withdrawn file becomes due again when it is
// named again.

// withdrawals withdraws the files of c's account that nothing names any more after c. The posts of
// c are written already. was is the state of the account before c.
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

// unnamed returns the files in t.Left that belong to account and that neither profile nor a post
// names. With all, it returns every file that was ever named and is not withdrawn.
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

// withdraw withdraws a file and the target of its redirect.
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

// admitFile admits a link to a file from the commit c, as Batch.Admit does. It leaves out a file of
// another account than c's, and a file that c does not name.
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
