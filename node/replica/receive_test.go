package replica

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/racetest"
	"github.com/echo-node/echo-node/store"
)

// A slice can be imported even if its texts expand a thousandfold.
func TestImportOfWhatExpands(t *testing.T) {
	racetest.Skip(t)
	n := newRig(t, swarm())
	other := elsewhere(t, n)
	now := time.Now()
	text := strings.Repeat("spam ", 200_000)
	var s partition.Slice
	for i := range 70 {
		k := mustKey(t, fmt.Sprintf("http://spam.example/%d", i))
		s = other.SliceOf(k)
		if _, err := other.Queue.Admit([]store.Admission{{Key: k}}, now); err != nil {
			t.Fatal(err)
		}
		r := &store.Record{V: store.RecordVersion, Key: k, Kind: "page", URL: k.URL(), FetchedAt: now, Source: "web",
			Status: 200, Text: text}
		if err := other.Commit(store.Commit{Key: k, Now: now, Record: r,
			Next: store.Next{State: store.StateDone}}); err != nil {
			t.Fatal(err)
		}
	}
	rows, next, err := other.Log.SliceRows(s, nil, reconcilePage)
	if err != nil || len(next) > 0 {
		t.Fatal(len(rows), next, err)
	}
	if err := n.receiver.importRows(s, rows); err != nil {
		t.Fatal(err)
	}
	if st := n.o.Store.Stats(); st.Records != 70 {
		t.Errorf("%d records of 70", st.Records)
	}
}
