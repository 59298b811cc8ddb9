package partition

import (
	"errors"
	"fmt"
	"math/bits"
	"net/netip"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/net/publicsuffix"
)

// Slice is a prefix of the 64-bit space; see the package comment.
type Slice uint64

// ErrSlice is wrapped by every error of ParseSlice.
var ErrSlice = errors.New("not a slice")

// MaxSliceBits is the length of the longest hash prefix.
const MaxSliceBits = 20

// hashFaces are the two top bits of a hash slice: the faces 6 and 7, which S2 does not use.
const hashFaces = 3 << 62

// hashSlice returns the slice of the top n bits of h.
func hashSlice(h uint64, n int) Slice {
	return Slice(hashFaces | h>>(64-n)<<(62-n) | 1<<(61-n))
}

// IsHash reports whether s is a hash slice. Otherwise s is a geo slice or invalid.
func (s Slice) IsHash() bool { return s.Valid() && s>>62 == 3 }

// Bits returns the length of a hash slice's prefix, and 0 for other slices.
func (s Slice) Bits() int {
	if s>>62 != 3 {
		return 0
	}
	return 61 - bits.TrailingZeros64(uint64(s))
}

// Valid reports whether s is a hash slice of 1 to MaxSliceBits bits or an S2 cell.
func (s Slice) Valid() bool {
	if s>>62 == 3 {
		n := s.Bits()
		return 1 <= n && n <= MaxSliceBits
	}
	// The marker of a cell is at an even position: two bits for each level.
	return s != 0 && bits.TrailingZeros64(uint64(s))%2 == 0 && bits.TrailingZeros64(uint64(s)) <= 60
}

// Prefix returns a hash slice's prefix as a number, from 0 to 2^Bits - 1.
func (s Slice) Prefix() uint64 {
	n := s.Bits()
	return uint64(s) &^ hashFaces >> (62 - n)
}

// String returns "h/0a3" for a hash slice: the prefix as a number in hex. It adds the number of
// bits when that is not a multiple of four, as in "h/0a3:11". For a geo slice it returns
// "g/TOKEN" (an S2 cell token), and for an invalid slice "x/" and 16 digits.
func (s Slice) String() string {
	switch {
	case !s.Valid():
		return fmt.Sprintf("x/%016x", uint64(s))
	case s>>62 != 3:
		return "g/" + strings.TrimRight(fmt.Sprintf("%016x", uint64(s)), "0")
	case s.Bits()%4 == 0:
		return fmt.Sprintf("h/%0*x", s.Bits()/4, s.Prefix())
	}
	return fmt.Sprintf("h/%0*x:%d", (s.Bits()+3)/4, s.Prefix(), s.Bits())
}

// ParseSlice reads only what String writes.
func ParseSlice(text string) (Slice, error) {
	s, ok := parseSlice(text)
	if !ok || s.String() != text {
		return 0, fmt.Errorf("parse slice: %w: %s", ErrSlice, quote(text))
	}
	return s, nil
}

// parseSlice reads a text, also in forms that String does not write.
func parseSlice(text string) (Slice, bool) {
	kind, rest, _ := strings.Cut(text, "/")
	digits, length, has := strings.Cut(rest, ":")
	if len(digits) == 0 || len(digits) > 16 {
		return 0, false
	}
	v, err := strconv.ParseUint(digits, 16, 64)
	if err != nil {
		return 0, false
	}
	switch kind {
	case "g":
		s := Slice(v << (64 - 4*len(digits)))
		return s, s.Valid() && s>>62 != 3
	case "h":
		n := 4 * len(digits)
		if has {
			if n, err = strconv.Atoi(length); err != nil {
				return 0, false
			}
		}
		if n < 1 || n > MaxSliceBits || v>>n != 0 {
			return 0, false
		}
		return hashSlice(v<<(64-n), n), true
	}
	return 0, false
}

// How a Key is assigned to a hash slice, part of profile 1. The unit of a Key is a text; the
// slice is the prefix of xxhash64("echo-node slice 1\n" + unit).
//
//	web, feed, media   "web REGISTRABLE-DOMAIN" (public suffix list with its
//	                   private section; a host that is itself a suffix, or has
//	                   one label, is its own domain)
//	of an IP host, ip  "ip ADDR" (an IPv4-mapped IPv6 address is IPv4); no port
//	account, its lists fan-out 0: "account KEY" of the account
//	and files          fan-out f: "site SITE N", N = xxhash64("echo-node account 1\n"
//	                   + account Key) mod f
//	tag, timeline,     fan-out 0: "key KEY"
//	search             fan-out f: "site SITE 0"
const (
	sliceDomain   = "echo-node slice 1\n"
	accountDomain = "echo-node account 1\n"
)

// Slice returns the slice of k by hash (the slice of k's registrar).
func (c Charter) Slice(k Key) Slice {
	var buf [256]byte // most units fit
	unit := c.appendUnit(append(buf[:0], sliceDomain...), k)
	return hashSlice(xxhash.Sum64(unit), c.SliceBits)
}

// appendUnit appends the unit of k to b: the text that is hashed.
func (c Charter) appendUnit(b []byte, k Key) []byte {
	switch kind := k.Kind(); kind {
	case KindPage, KindFeed, KindMedia:
		return appendHostUnit(b, k.Host())
	case KindAddress:
		return append(append(b, "ip "...), k.Host()...)
	case KindAccount, KindFollowers, KindFollowing, KindFile:
		account := k.Account()
		f := c.Fanout[k.Service()]
		if f <= 0 {
			return append(append(b, "account "...), account...)
		}
		b = append(append(append(b, "site "...), account.Site()...), ' ')
		n := hashText(accountDomain, string(account)) % uint64(f)
		return strconv.AppendUint(b, n, 10)
	default:
		if c.Fanout[k.Service()] <= 0 {
			return append(append(b, "key "...), k...)
		}
		return append(append(append(b, "site "...), k.Site()...), " 0"...)
	}
}

// appendHostUnit appends the unit of a host: its address, or its registrable domain.
func appendHostUnit(b []byte, host string) []byte {
	if maybeAddress(host) {
		if a, err := netip.ParseAddr(host); err == nil {
			return a.Unmap().AppendTo(append(b, "ip "...))
		}
	}
	return append(append(b, "web "...), Domain(host)...)
}

// Domain returns the registrable domain of host: one label more than its public suffix,
// including private suffixes. It returns host itself when that is a suffix, has one label, or
// is an address.
func Domain(host string) string {
	if maybeAddress(host) {
		if _, err := netip.ParseAddr(host); err == nil {
			return host
		}
	}
	domain, err := publicsuffix.EffectiveTLDPlusOne(host)
	if err != nil {
		return host
	}
	return domain
}

// maybeAddress is a cheap test: it returns false for most hosts that are no IP address.
func maybeAddress(host string) bool {
	if host == "" {
		return false
	}
	last := host[len(host)-1]
	return '0' <= last && last <= '9' || strings.Contains(host, ":")
}

// hashText returns the 64-bit hash of domain and text together.
func hashText(domain, text string) uint64 {
	var buf [256]byte
	return xxhash.Sum64(append(append(buf[:0], domain...), text...))
}
