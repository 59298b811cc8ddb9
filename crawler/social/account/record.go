package account

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"github.com/echo-node/echo-node/store"
)

// Moment is t in UTC, nil when it is zero.
func Moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// Digest is the sum of b as records have it.
func Digest(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Wished notes in r the wishes of an account that are hashtags in its texts.
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

// Counts are those that were said.
func Counts(of map[string]int64) map[string]int64 {
	out := map[string]int64{}
	for name, n := range of {
		if n >= 0 {
			out[name] = n
		}
	}
	return out
}

// Flagged are the words of of that hold, added to r.
func Flagged(r *store.Record, of map[string]bool) {
	for word, is := range of {
		if is {
			r.Flags = append(r.Flags, word)
		}
	}
	slices.Sort(r.Flags)
}

// Pictures of a profile.
func Pictures(avatar, header string) (out []store.Media) {
	for _, m := range [...]store.Media{{Type: "avatar", URL: avatar}, {Type: "header", URL: header}} {
		if m.URL != "" {
			out = append(out, m)
		}
	}
	return out
}
