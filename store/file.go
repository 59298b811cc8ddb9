package store

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/echo-node/echo-node/partition"
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

// withdrawn is the reason of a file's Key that nothing of its account names any more.
const withdrawn = "withdrawn"

func (k *keyState) withdrawn(of partition.Key) bool {
	return k.state == StateGone && k.reason == withdrawn && of.Kind() == partition.KindFile
}

// bare says whether there is neither record nor capture of a Key in that state.
func (k *keyState) bare(of partition.Key) bool {
	return k.state == StatePlaced || k.state != StateDone && of.Kind() == partition.KindFile
}

// ofFile says whether what follows the slice in a row's key is of a file.
func ofFile(rest []byte) bool {
	_, k, ok := cutSite(rest)
	return ok && partition.Key(k).Kind() == partition.KindFile
}

// File is the Key of m as a file of account; false of what is none: the card of a
// page, what has no address.
func (m Media) File(account partition.Key) (partition.Key, bool) {
	if m.Type == "link" || m.URL == "" {
		return "", false
	}
	k, err := account.File(m.URL)
	return k, err == nil
}

// files calls fn for the files that r names, as far as they may be kept.
func (r *Record) files(fn func(partition.Key)) {
	if r == nil || r.Deleted || !r.archived() {
		return
	}
	for _, m := range r.Media {
		if k, ok := m.File(r.Key); ok {
			fn(k)
		}
	}
}

// names notes that this batch has r in the place of old, either nil, for the files
// of their account.
func (t *txn) names(old, r *Record) {
	if old != nil && len(old.Media) > 0 {
		if t.left == nil {
			t.left = map[partition.Key]bool{}
		}
		old.files(func(k partition.Key) { t.left[k] = true })
	}
	r.files(func(k partition.Key) {
		if t.named == nil {
			t.named = map[partition.Key]bool{}
		}
		t.named[k] = true
	})
}

// withdrawals withdraws the files of c's account that c, whose posts are written, has
// nothing name any more. was is the state of the account before.
func (t *txn) withdrawals(id siteID, c Commit, was keyState) error {
	if err := t.withdrawBrought(id, c); err != nil {
		return err
	}
	if c.Key.Kind() != partition.KindAccount {
		return nil
	}
	all := c.Next.State == StateGone && was.state != StateGone
	if c.Record == nil && !all && len(t.left) == 0 {
		return nil
	}
	old, err := t.recordOf(id, c.Key)
	if err != nil {
		return err
	}
	profile := old
	if c.Record != nil {
		t.names(old, c.Record)
		profile = c.Record
		all = all || !c.Record.archived() && (old == nil || old.archived())
	}
	if all {
		t.names(old, nil)
	}
	return t.withdrawUnnamed(id, c.Key, profile, all, c.Now)
}

// withdrawUnnamed withdraws the files of account that nothing names any more; see unnamed.
func (t *txn) withdrawUnnamed(id siteID, account partition.Key, profile *Record, all bool, now time.Time) error {
	left, err := t.unnamed(id, account, profile, all)
	if err != nil {
		return err
	}
	for _, k := range slices.Sorted(maps.Keys(left)) {
		if err := t.withdraw(id.slice, k, now); err != nil {
			return err
		}
	}
	return nil
}

// recordOf is the record of k as it was before this batch, nil when there is none.
func (t *txn) recordOf(id siteID, k partition.Key) (*Record, error) {
	v, err := t.s.get(keyRow(tabRecord, id, k))
	if err != nil {
		return nil, ignoreAbsent(err)
	}
	r, err := t.s.packer.decodeRecord(v)
	return &r, err
}

// unnamed are the files of account that are left and that neither profile nor a post
// of it names; all: every file that was ever named, and is not withdrawn.
func (t *txn) unnamed(id siteID, account partition.Key, profile *Record, all bool) (map[partition.Key]bool, error) {
	left := map[partition.Key]bool{}
	add := func(k partition.Key) error {
		st, err := t.keyState(siteID{id.slice, k.Site()}, k)
		if err == nil && !st.withdrawn(k) {
			left[k] = true
		}
		return ignoreAbsent(err)
	}
	for k := range t.left {
		if k.Account() != account {
			continue
		}
		if err := add(k); err != nil {
			return nil, err
		}
	}
	if !all {
		profile.files(func(k partition.Key) { delete(left, k) })
	}
	if !all && len(left) == 0 {
		return nil, nil
	}
	err := t.postsOf(id, account, func(p postRow) (more bool, err error) {
		p.Record.files(func(k partition.Key) {
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

// postsOf calls fn for the posts of k that may name files, as this batch leaves them,
// until it answers false.
func (t *txn) postsOf(id siteID, k partition.Key, fn func(postRow) (bool, error)) error {
	prefix := itemKey(tabPost, id, k)
	more := true
	visit := func(state []byte) error {
		if !bytes.Contains(state, []byte(`"media":[`)) {
			return nil
		}
		p, err := parsePost(state)
		if err == nil {
			more, err = fn(p)
		}
		return err
	}
	for row, state := range t.items {
		if more && bytes.HasPrefix([]byte(row), prefix) {
			if err := visit(state); err != nil {
				return err
			}
		}
	}
	if !more {
		return nil
	}
	return t.s.scan(prefix, after(prefix), func(key, value []byte) (bool, error) {
		if _, written := t.items[string(key)]; written {
			return true, nil
		}
		state, err := t.s.packer.openItem(tabPost, value)
		if err == nil {
			err = visit(state)
		}
		return more, err
	})
}

// withdraw forgets a file, and where it redirected to.
func (t *txn) withdraw(sl partition.Slice, k partition.Key, now time.Time) error {
	to := partition.Key("")
	if r, err := t.s.fileRecord(sl, k); err == nil {
		to = r.Redirect
	} else if ignoreAbsent(err) != nil {
		return err
	}
	for _, k := range [...]partition.Key{k, to} {
		if k.Kind() != partition.KindFile {
			continue
		}
		id := siteID{sl, k.Site()}
		old, err := t.keyState(id, k)
		if errors.Is(err, ErrNotExist) || err == nil && old.withdrawn(k) {
			continue
		}
		if err != nil {
			return err
		}
		next := old.moved(now)
		next.state, next.at, next.attempts, next.reason = StateGone, time.Time{}, 0, withdrawn
		next.etag, next.modified, next.digest, next.history = "", "", "", ""
		if err := t.put(id, k, &old, next); err != nil {
			return err
		}
		if err := t.unrecord(id, k, false); err != nil {
			return err
		}
	}
	return nil
}

// admitFile is t.admit of a link to a file from a commit of c. A file that is not
// c's account's, or that c does not name, is left out.
func (t *txn) admitFile(from siteID, c Commit, a Admission, fresh map[partition.Key]bool) error {
	to := siteID{from.slice, a.Key.Site()}
	named := t.named[a.Key] || c.Key.Kind() == partition.KindFile
	if !named || a.Key.Account() != c.Key.Account() || !t.s.charter.MayHold(to.slice, a.Key) {
		return nil
	}
	old, err := t.keyState(to, a.Key)
	if err != nil || !old.withdrawn(a.Key) {
		if ignoreAbsent(err) == nil {
			_, err = t.admit(to, a, c.Now, fresh)
		}
		return err
	}
	fresh[a.Key] = true
	next := old.moved(c.Now)
	next.state, next.at, next.reason = StatePending, c.Now.UTC(), ""
	return t.put(to, a.Key, &old, next)
}

// fileRecord is the record of the file k in sl.
func (s *Store) fileRecord(sl partition.Slice, k partition.Key) (r Record, err error) {
	v, err := s.get(keyRow(tabRecord, siteID{sl, k.Site()}, k))
	if err != nil {
		return r, err
	}
	if r, err = s.packer.decodeRecord(v); err != nil {
		return r, fmt.Errorf("record of %s: %w", k, err)
	}
	return r, nil
}

// had fills in the digests of the files that r, of an account in sl, names and that
// were had.
func (s *Store) had(sl partition.Slice, r *Record) error {
	if len(r.Media) == 0 || r.Key.Kind() != partition.KindAccount || s.totals.noFiles() {
		return nil
	}
	r.Media = slices.Clone(r.Media)
	for i := range r.Media {
		m := &r.Media[i]
		k, ok := m.File(r.Key)
		for hops := 0; ok && hops < 2; hops++ {
			f, err := s.fileRecord(sl, k)
			if ignoreAbsent(err) != nil {
				return err
			}
			m.Digest = f.Digest
			k, ok = f.Redirect, f.Redirect != ""
		}
	}
	return nil
}

// unhad takes out of r what had fills in: it is no part of what is stored.
func (r *Record) unhad() {
	if slices.ContainsFunc(r.Media, func(m Media) bool { return m.Digest != "" }) {
		r.Media = slices.Clone(r.Media)
		for i := range r.Media {
			r.Media[i].Digest = ""
		}
	}
}

// fileSize is what a record of a file counts as.
type fileSize struct{ files, bytes int64 }

func sizeOf(r *Record) fileSize {
	if r.Digest == "" {
		return fileSize{}
	}
	return fileSize{1, max(r.Size, 0)}
}

// sized counts the file k, whose record this batch makes body, nil for none.
func (t *txn) sized(id siteID, k partition.Key, body []byte) error {
	if k.Kind() != partition.KindFile {
		return nil
	}
	was, ok := t.sizes[k]
	if !ok {
		r, err := t.s.fileRecord(id.slice, k)
		if ignoreAbsent(err) != nil {
			return err
		}
		was = sizeOf(&r)
	}
	var now fileSize
	if body != nil {
		r, err := t.s.packer.decodeRecord(body)
		if err != nil {
			return err
		}
		now = sizeOf(&r)
	}
	if t.sizes == nil {
		t.sizes = map[partition.Key]fileSize{}
	}
	t.sizes[k] = now
	n, err := t.count(id)
	if err != nil {
		return err
	}
	n.files += now.files - was.files
	n.bytes += now.bytes - was.bytes
	return nil
}
