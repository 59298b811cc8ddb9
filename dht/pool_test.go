package dht

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	ds "github.com/ipfs/go-datastore"

	"github.com/echo-node/echo-node/dht/guard"
	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/partition"
)

// A full datastore replaces old records and counts that.
func TestRecordsOfKademliaAreBounded(t *testing.T) {
	refused := &guard.Tally{}
	r := newRecords(100, refused)
	for i := range 250 {
		if err := r.Put(t.Context(), ds.NewKey(fmt.Sprint(i)), []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if len(r.keys) != 100 || refused.All()["record-displaced"] != 150 {
		t.Errorf("%d records, %v", len(r.keys), refused.All())
	}
	if _, err := r.Get(t.Context(), ds.NewKey("249")); err != nil {
		t.Error(err)
	}
}

// A request that is not urgent is refused on the urgent protocol. An outsider does not learn where
// a member is.
func TestPriorityAndVouchAreForMembers(t *testing.T) {
	t.Parallel()
	urgent := func(r *wire.Request) bool { return r.GetConfigs() != nil }
	ds := swarmOf(t, 2, func(o *Options) { o.Priority = urgent })
	s, err := ds[1].host.NewStream(t.Context(), ds[0].self, ds[0].prefix+prioritySuffix)
	if err != nil {
		t.Fatal(err)
	}
	req := whoOwns("web:https://example.org/")
	req.Version = partition.WireVersion
	if _, err := wire.WriteRequest(s, req); err != nil {
		t.Fatal(err)
	}
	res, _, err := wire.ReadResponse(s)
	if err != nil || res.GetRefusal().GetCode() != wire.Refusal_CODE_MALFORMED {
		t.Errorf("%v, %v", res, err)
	}
	addrs, err := ds[1].guard.AskWitness(t.Context(), ds[0].self, ds[1].self)
	if err != nil || len(addrs) == 0 {
		t.Errorf("a member is told %v, %v", addrs, err)
	}
	h := stranger(t, ds[0])
	v, err := h.NewStream(context.Background(), ds[0].self, ds[0].prefix+guard.VouchSuffix)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = v.Reset() }()
	// the stream may already be reset
	_, _ = v.Write(append(binary.AppendUvarint(nil, uint64(len(ds[1].self))), ds[1].self...))
	if n, err := v.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Error("a stranger is told where a member is")
	}
	eventually(t, 5*time.Second, "it is counted", func() bool { return ds[0].Stats().NoPlace["vouch-outsider"] == 1 })
}
