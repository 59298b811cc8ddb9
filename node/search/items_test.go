package search

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/node/call"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// An export resumes after any of its lines, also in the middle of an account or a list. It returns
// each item once.
func TestExportOfItemsResumes(t *testing.T) {
	n := newFixture(t)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for a := range 3 {
		k := partition.Key(fmt.Sprintf("mastodon:user%d@social.example", a))
		if _, err := n.store.Queue.Admit([]store.Admission{{Key: k}}, now); err != nil {
			t.Fatal(err)
		}
		c := store.Commit{Key: k, Now: now, Next: store.Next{State: store.StateDone}}
		if a > 0 { // the first has no profile
			c.Record = &store.Record{V: store.RecordVersion, Key: k, Kind: store.KindProfile, FetchedAt: now}
		}
		for i := range MaxRecordPage {
			c.Posts = append(c.Posts, store.Record{V: store.RecordVersion, Key: k, Kind: store.KindPost,
				Post: fmt.Sprint("https://social.example/", i)})
		}
		p := store.ListPage{List: k + "/followers", Walk: now, End: true, Complete: true}
		for i := range 2*edgesPiece + 1 {
			p.Accounts = append(p.Accounts, partition.Key(fmt.Sprintf("mastodon:f%d@social.example", i)))
		}
		c.Lists = []store.ListPage{p}
		c.Gaps = []store.Gap{{From: now, What: store.GapCut}, {From: now, What: store.GapExpired}}
		if err := n.store.Commit(c); err != nil {
			t.Fatal(err)
		}
	}
	for kind, want := range map[string]int{"": 3*(MaxRecordPage+3+2) + 2, "post": 3 * MaxRecordPage, "edges": 9,
		"gap": 6, "profile": 2, "page": 0} {
		whole := exportAll(t, n, api.Export{Kind: kind}, 10000)
		if len(whole) != want {
			t.Errorf("%q: %d lines, want %d", kind, len(whole), want)
		}
		for stop := 1; stop < len(whole); stop += 1 + len(whole)/11 {
			rest := exportAll(t, n, api.Export{Kind: kind, Cursor: whole[stop-1][1]}, 10000)
			if len(rest) != len(whole)-stop || rest[0] != whole[stop] {
				t.Errorf("%q, after %d of %d: %d", kind, stop, len(whole), len(rest))
			}
		}
	}
}

func TestItemsOfAnotherPeerAreChecked(t *testing.T) {
	gap := &store.Gap{Key: "mastodon:a@b.example"}
	for part, r := range map[string]store.Record{
		"S" + "uri":  {Kind: store.KindPost, Post: "another"},
		"S" + "uri2": {Kind: store.KindPage, Post: "uri2"},
		"F":          {Kind: store.KindPost},
		"J" + "x":    {Kind: store.KindGap},
		"J" + "y":    {Kind: store.KindGap, Key: "mastodon:c@b.example", Gap: gap},
		"Z":          {Kind: store.KindPost},
	} {
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var got store.Record
		if err := readItem(&got, part, b); !errors.Is(err, call.ErrForeign) {
			t.Errorf("%q: %v", part, err)
		}
	}
}
