package fetch

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// This attack once made the client receive 991 MiB, at the default cap. The Total of 20 s was for
// the code that received them all.
func TestAttackEmptyGzipMembers(t *testing.T) {
	const name = "encoding-overhead"
	b := serveBad(t, badShape{first: ok200 + "Content-Encoding: gzip\r\n\r\n", endless: emptyGzip()})
	r, err := client(t, Options{Total: 20 * time.Second}).Get(t.Context(), Request{URL: b.url}, nil)
	var limit *LimitError
	if !errors.As(err, &limit) || limit.Name != name || Stop(err) != name || !Final(err) ||
		!strings.Contains(Reason(err), name) {
		t.Errorf("%v", err)
	}
	if sent := b.sent.Load(); r == nil || sent > 32<<20 || r.Bytes > sent || r.Bytes < 1<<20 {
		t.Errorf("%d bytes sent, %+v", sent, r)
	}
}
