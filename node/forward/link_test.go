package forward

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/store"
)

// A hint arrives as it was sent, but a site is believed only about its own pages. An invalid hint
// is ignored, and a message of an older version has none.
func TestHintsOfLinks(t *testing.T) {
	r := NewRegistrar(Options{})
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	const here, other = "web:https://a.example/1", "web:https://b.example/1"
	for name, c := range map[string]struct {
		a    store.Admission
		want store.Hint
	}{
		"own site": {store.Admission{Key: here, Referrer: "web:https://a.example/sitemap.xml",
			Hint: store.Hint{Kind: store.HintSitemap, At: at}}, store.Hint{Kind: store.HintSitemap, At: at}},
		"another's": {store.Admission{Key: other, Referrer: here, Hint: store.Hint{Kind: store.HintFeed, At: at}},
			store.Hint{Kind: store.HintElsewhere, At: at}},
		"of nobody": {store.Admission{Key: other, Hint: store.Hint{Kind: store.HintFeed, At: at}},
			store.Hint{Kind: store.HintElsewhere, At: at}},
		"no such": {store.Admission{Key: here, Referrer: here, Hint: store.Hint{Kind: 77, At: at}}, store.Hint{}},
		"never sent": {store.Admission{Key: here, Referrer: here, Hint: store.Hint{Kind: store.HintHeader, At: at}},
			store.Hint{}},
		"no time": {store.Admission{Key: here, Referrer: here,
			Hint: store.Hint{Kind: store.HintFeed, At: time.Unix(-5, 0)}}, store.Hint{}},
		"end of time": {store.Admission{Key: here, Referrer: here,
			Hint: store.Hint{Kind: store.HintFeed, At: time.Unix(1<<62, 0)}}, store.Hint{}},
		"none": {store.Admission{Key: here, Referrer: here}, store.Hint{}},
	} {
		b, err := proto.Marshal(linkOf(c.a))
		if err != nil {
			t.Fatal(err)
		}
		l := new(wire.Link)
		if err := proto.Unmarshal(b, l); err != nil {
			t.Fatal(err)
		}
		if got, err := r.admissionOf(l); err != nil || got.Hint != c.want || got.Key != c.a.Key {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
