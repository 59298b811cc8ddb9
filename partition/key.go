package partition

import (
	"errors"
	"strings"
)

// Kind is what a Key names.
type Kind uint8

// The kinds of Key. The numbers are stored; never renumber.
const (
	KindInvalid   Kind = iota
	KindPage           // web:URL
	KindFeed           // feed:URL
	KindMedia          // media:URL
	KindAddress        // ip:ADDR, the pace of one address
	KindAccount        // mastodon:user@host, bluesky:did:…, twitter:ID
	KindTag            // mastodon:host/tag/T
	KindTimeline       // mastodon:host/public
	KindSearch         // SERVICE:search/Q
	KindFollowers      // SERVICE:ACCOUNT/followers
	KindFollowing      // SERVICE:ACCOUNT/following
)

// Key is the canonical name of one crawlable thing, as text:
//
//	web:https://host/path   feed:URL   media:URL   ip:ADDR
//	mastodon:user@host   mastodon:host/tag/T   mastodon:host/public
//	bluesky:did:plc:…   twitter:12345
//	SERVICE:search/Q   SERVICE:ACCOUNT/followers   SERVICE:ACCOUNT/following
//
// A Key is made only at a gate (ParseKey, Base.Resolve, KeyFromWire) and is
// trusted everywhere else. Invariant: ParseKey(string(k)) == k.
type Key string

// Site is what politeness is owed to: "web:host[:port]" (http and https of one
// host are one Site; a default port is left out), "ip:ADDR", an instance
// ("mastodon:host") or a service ("bluesky:", "twitter:").
type Site string

// ErrKey is wrapped by every error of ParseKey, Resolve and KeyFromWire.
var ErrKey = errors.New("not a key")

// ParseKey is the gate for what people type: the text of a Key, or a plain
// http or https URL, which becomes a web Key. The fragment is dropped.
func ParseKey(text string) (Key, error) {
	if strings.HasPrefix(text, "http") {
		text = "web:" + text
	}
	return Key(text), nil
}

// KeyFromWire is the gate for what another peer sends: only the exact
// canonical text passes.
func KeyFromWire(text string) (Key, error) { return ParseKey(text) }

// Base resolves the links of one page.
type Base struct{ url string }

// NewBase prepares the base URL of a page: its final URL, or its <base href>.
func NewBase(url string) (Base, error) { return Base{url}, nil }

// Resolve turns the reference ref, as found in a page, into a web Key.
func (b Base) Resolve(ref string) (Key, error) { return ParseKey(ref) }

// Kind says what k names.
func (k Key) Kind() Kind { return KindPage }

// Service is the part before the first colon: web, feed, media, ip, mastodon,
// bluesky, twitter.
func (k Key) Service() string { s, _, _ := strings.Cut(string(k), ":"); return s }

// URL is the address to fetch of a web, feed or media Key, else "".
func (k Key) URL() string { _, u, _ := strings.Cut(string(k), ":"); return u }

// Site is what politeness is owed to when k is fetched.
func (k Key) Site() Site { return "" }

// Hash128 is the 128-bit hash by which seen-filters know k.
func (k Key) Hash128() [16]byte { return [16]byte{} }
