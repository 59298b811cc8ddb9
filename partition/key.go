package partition

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// Kind is the kind of thing that a Key names.
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
	KindName           // bluesky:HANDLE, twitter:@NAME: an account name that must still be resolved
	KindFile           // SERVICE:ACCOUNT/media/URL: a file of a post or the profile of the account
)

// String returns the kind's name, one word.
func (k Kind) String() string {
	names := [...]string{"invalid", "page", "feed", "media", "address", "account",
		"tag", "timeline", "search", "followers", "following", "name", "file"}
	if int(k) < len(names) {
		return names[k]
	}
	return names[KindInvalid]
}

// Key is the canonical name of one thing to crawl, as text:
//
//	web:https://host/path   feed:URL   media:URL   ip:ADDR
//	mastodon:user@host   mastodon:host/tag/T   mastodon:host/public
//	bluesky:did:plc:…   twitter:12345   and by name: bluesky:alice.example   twitter:@alice
//	SERVICE:search/Q   SERVICE:ACCOUNT/followers   SERVICE:ACCOUNT/following
//	SERVICE:ACCOUNT/media/URL
//
// A Key is printable ASCII without spaces, at most MaxKeyBytes long. Only ParseKey,
// Base.Resolve and KeyFromWire make Keys; all other code trusts them. Invariant:
// KeyFromWire(string(k)) == k. Also ParseKey(string(k)) == k, unless k is from an older version
// and has a BadPort.
type Key string

// Site is the unit of politeness. For the web it is "web:host[:port]", without a default port: http
// and https of one host are one Site. It is "ip:ADDR" for an address, "mastodon:host[:port]" for an
// instance, and "bluesky:" or "twitter:" for a service. mastodon:search/Q names no instance, so its
// Site is "mastodon:".
type Site string

// ErrKey is wrapped by every error of ParseKey, Resolve and KeyFromWire.
var ErrKey = errors.New("not a key")

// ParseKey parses what people type: the text of a Key, or a plain http or https URL, which
// becomes a web Key. It drops the fragment and ignores white space at the ends. It refuses a
// URL with a BadPort.
func ParseKey(text string) (Key, error) {
	k, err := parseKey(strings.TrimSpace(text))
	if err == nil {
		err = refusePort(k.Port())
	}
	if err == nil && k.Kind() == KindFile { // it names the host of the account, too
		err = refusePort(k.Account().Port())
	}
	if err != nil {
		return "", fmt.Errorf("parse key: %w", err)
	}
	return k, nil
}

// parseKey makes text canonical, without the checks of ports.
func parseKey(text string) (Key, error) {
	if len(text) > MaxInputBytes {
		return "", fmt.Errorf("%w: longer than %d bytes", ErrKey, MaxInputBytes)
	}
	service, rest, ok := strings.Cut(text, ":")
	if !ok {
		return "", fmt.Errorf("%w: %s has no service and no scheme (web:, mastodon:, https:…)", ErrKey, quote(text))
	}
	var canonical string
	var err error
	switch service {
	case "web", "feed", "media":
		canonical, err = canonicalAbsolute(rest)
	case "ip":
		canonical, err = canonicalAddress(rest)
	case "mastodon":
		canonical, err = canonicalMastodon(rest)
	case "bluesky":
		canonical, err = canonicalBluesky(rest)
	case "twitter":
		canonical, err = canonicalTwitter(rest)
	default:
		if s := strings.ToLower(service); s != "http" && s != "https" {
			return "", fmt.Errorf("%w: unknown service or scheme %s", ErrKey, quote(service))
		}
		service = "web"
		canonical, err = canonicalAbsolute(text)
	}
	if err != nil {
		return "", err
	}
	k := Key(service + ":" + canonical)
	if len(k) > MaxKeyBytes {
		return "", fmt.Errorf("%w: longer than %d bytes", ErrKey, MaxKeyBytes)
	}
	return k, nil
}

// canonicalAddress returns the canonical text of an IP address. An IPv4-mapped IPv6 address becomes
// IPv4; an address with a zone is refused.
func canonicalAddress(text string) (string, error) {
	a, err := netip.ParseAddr(text)
	if err != nil || a.Zone() != "" {
		return "", fmt.Errorf("%w: address %s", ErrKey, quote(text))
	}
	return a.Unmap().String(), nil
}

// KeyFromWire parses what another peer sends. It accepts only the exact canonical text.
func KeyFromWire(text string) (Key, error) {
	if len(text) > MaxKeyBytes {
		return "", fmt.Errorf("key from wire: %w: longer than %d bytes", ErrKey, MaxKeyBytes)
	}
	k, err := parseKey(text)
	if err != nil {
		return "", fmt.Errorf("key from wire: %w", err)
	}
	if string(k) != text {
		return "", fmt.Errorf("key from wire: %w: %s is not canonical", ErrKey, quote(text))
	}
	return k, nil
}

// Kind returns the kind of thing that k names.
func (k Key) Kind() Kind {
	service, rest, _ := strings.Cut(string(k), ":")
	switch service {
	case "web":
		return KindPage
	case "feed":
		return KindFeed
	case "media":
		return KindMedia
	case "ip":
		return KindAddress
	case "mastodon", "bluesky", "twitter":
	default:
		return KindInvalid
	}
	head, tail, slash := strings.Cut(rest, "/")
	switch {
	case service == "bluesky" && !slash && !strings.HasPrefix(rest, "did:"), service == "twitter" &&
		strings.HasPrefix(rest, "@"):
		return KindName
	case !slash:
		return KindAccount
	case head == searchWord:
		return KindSearch
	case tail == "followers":
		return KindFollowers
	case tail == "following":
		return KindFollowing
	case strings.HasPrefix(tail, mediaWord):
		return KindFile
	case tail == "public":
		return KindTimeline
	}
	return KindTag
}

// Service returns the part before the first colon: web, feed, media, ip, mastodon, bluesky,
// twitter.
func (k Key) Service() string { s, _, _ := strings.Cut(string(k), ":"); return s }

// URL returns the address to fetch for a web, feed or media Key or for a file of an account.
// For other Keys it returns "".
func (k Key) URL() string {
	service, rest, _ := strings.Cut(string(k), ":")
	switch service {
	case "web", "feed", "media":
		return rest
	}
	return fileURL(rest)
}

// mediaWord is the separator between an account and the URL of one of its files.
const mediaWord = "media/"

// fileURL returns the URL in the rest of a file's Key, and "" for another social Key. No
// account, tag or query has a slash in it.
func fileURL(rest string) string {
	if i := strings.IndexByte(rest, '/'); i > 0 && strings.HasPrefix(rest[i+1:], mediaWord) {
		return rest[i+1+len(mediaWord):]
	}
	return ""
}

// File returns the Key under which the file at that URL is kept for the account k.
func (k Key) File(url string) (Key, error) {
	if k.Kind() != KindAccount {
		return "", fmt.Errorf("file of %s: %w: no account", quote(string(k)), ErrKey)
	}
	return ParseKey(string(k) + "/" + mediaWord + url)
}

// Host returns the host, without port and brackets, of a web, feed or media Key, of a file's
// URL or of an instance's Key. It returns the address of an ip Key, and otherwise "".
func (k Key) Host() string {
	service, rest, _ := strings.Cut(string(k), ":")
	if href := fileURL(rest); href != "" && service != "web" && service != "feed" && service != "media" {
		return hostname(authority(href))
	}
	switch service {
	case "ip":
		return rest
	case "web", "feed", "media":
		return hostname(authority(rest))
	case "mastodon":
		return hostname(instance(rest))
	}
	return ""
}

// Account returns the Key of the account whose followers, followings or file k is. It returns k
// itself when k is an account, and otherwise "".
func (k Key) Account() Key {
	switch k.Kind() {
	case KindAccount:
		return k
	case KindFollowers, KindFollowing:
		return k[:strings.LastIndexByte(string(k), '/')]
	case KindFile:
		return k[:strings.IndexByte(string(k), '/')]
	}
	return ""
}

// Site returns the Site whose politeness limits apply when k is fetched. For an account's file
// that is the web host of the file.
func (k Key) Site() Site {
	service, rest, _ := strings.Cut(string(k), ":")
	switch service {
	case "web", "feed", "media":
		return Site("web:" + authority(rest))
	case "ip":
		return Site(k)
	}
	if href := fileURL(rest); href != "" {
		return Site("web:" + authority(href))
	}
	switch service {
	case "mastodon":
		return Site("mastodon:" + instance(rest))
	case "bluesky", "twitter":
		return Site(k[:len(service)+1])
	}
	return ""
}

// Hash128 returns the 128-bit hash of k for seen-filters. It is the first half of SHA-256, so
// that no page can be made whose links hide other links.
func (k Key) Hash128() [16]byte {
	sum := sha256.Sum256([]byte(k))
	return [16]byte(sum[:16])
}

// authority returns the host and port of a canonical URL.
func authority(href string) string {
	_, rest, _ := strings.Cut(href, "://")
	a, _, _ := strings.Cut(rest, "/")
	return a
}

// hostname returns an authority without its port and brackets.
func hostname(a string) string {
	if strings.HasPrefix(a, "[") {
		h, _, _ := strings.Cut(a[1:], "]")
		return h
	}
	h, _, _ := strings.Cut(a, ":")
	return h
}
