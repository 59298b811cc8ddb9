package bluesky

import (
	"fmt"
	"strings"
	"time"
)

// The collections that this package reads.
const (
	Posts   = "app.bsky.feed.post"
	Reposts = "app.bsky.feed.repost"
	Follows = "app.bsky.graph.follow"
)

// URI is the address of a record.
type URI struct{ DID, Collection, Key string }

// maxURI is the longest address of a record: a DID, a collection and a key.
const maxURI = 2 << 10

// ParseURI parses at://DID/COLLECTION/KEY.
func ParseURI(s string) (URI, error) {
	rest, ok := strings.CutPrefix(s, "at://")
	parts := strings.Split(rest, "/")
	if !ok || len(s) > maxURI || len(parts) != 3 || did(parts[0]) == "" || !nsid(parts[1]) || !recordKey(parts[2]) {
		return URI{}, fmt.Errorf("bluesky: %.100q is not the address of a record", s)
	}
	return URI{parts[0], parts[1], parts[2]}, nil
}

// String returns the address.
func (u URI) String() string { return "at://" + u.DID + "/" + u.Collection + "/" + u.Key }

// KeyOf returns the last part of a record's address.
func KeyOf(uri string) string { return uri[strings.LastIndexByte(uri, '/')+1:] }

// KeyTime returns when a record was created, by its key. Nearly all keys are TIDs: 13 digits of
// base 32, of which the last ten bits are a clock id. It returns zero for any other key, and for a
// time after 2200.
func KeyTime(key string) time.Time {
	const digits = "234567abcdefghijklmnopqrstuvwxyz"
	x := int64(0)
	for i := range len(key) {
		d := strings.IndexByte(digits, key[i])
		if d < 0 || len(key) != 13 || i == 0 && d > 15 {
			return time.Time{}
		}
		x = x<<5 | int64(d)
	}
	at := time.UnixMicro(x >> 10).UTC()
	if at.Year() > 2200 {
		return time.Time{}
	}
	return at
}

// recordKey reports whether s can be the key of a record (AT Protocol, record key syntax).
func recordKey(s string) bool {
	return s != "" && s != "." && s != ".." && len(s) <= 512 && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("._:~-", r))
	})
}

// nsid reports whether s can be the name of a collection.
func nsid(s string) bool {
	return len(s) <= 317 && strings.Count(s, ".") >= 2 && !strings.Contains(s, "..") && !strings.HasPrefix(s, ".") &&
		!strings.HasSuffix(s, ".") &&
		!strings.ContainsFunc(s, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-')
		})
}

// uri returns t if it is the address of a record, else "".
func uri(t text) string {
	if _, err := ParseURI(string(t)); err != nil {
		return ""
	}
	return string(t)
}
