package account

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"github.com/echo-node/echo-node/store"
)

// Moment returns t in UTC, nil if t is zero.
func Moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// Digest returns the SHA-256 sum of b in the format of records.
func Digest(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Wished adds to r the wishes of an account, given as hashtags in its texts.
func Wished(r *store.Record, wishes []string) {
	for _, w := range wishes {
		r.Flags = append(r.Flags, w)
		switch w {
		case "#noarchive":
			r.NoArchive = true
		case "#noindex", "#nosearch":
			r.NoIndex = true
		}
	}
}

// Counts returns the counters that the service returned. A negative counter means unknown and is
// left out.
func Counts(of map[string]int64) map[string]int64 {
	out := map[string]int64{}
	for name, n := range of {
		if n >= 0 {
			out[name] = n
		}
	}
	return out
}

// Flagged adds the words that are true in of to the flags of r, and sorts the flags.
func Flagged(r *store.Record, of map[string]bool) {
	for word, is := range of {
		if is {
			r.Flags = append(r.Flags, word)
		}
	}
	slices.Sort(r.Flags)
}

// Pictures returns the avatar and the header picture of a profile as media.
func Pictures(avatar, header string) (out []store.Media) {
	for _, m := range [...]store.Media{{Type: "avatar", URL: avatar}, {Type: "header", URL: header}} {
		if m.URL != "" {
			out = append(out, m)
		}
	}
	return out
}
