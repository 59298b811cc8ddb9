package partition

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/net/publicsuffix"
)

// Mode says how the crawl space is divided.
type Mode string

// The two modes: docs/architecture.md and docs/geo.md.
const (
	ModeHash Mode = "hash"
	ModeGeo  Mode = "geo"
)

// CharterVersion is the version of the Charter's own format.
const CharterVersion = 1

// KeyProfile is the version of the canonicalisation profile that this program implements. Peers
// with different versions would disagree about Keys.
const KeyProfile = 1

// WireVersion is the version of the messages between peers.
const WireVersion = 2

// MaxZoneMembers is the largest ZoneMax. One membership list holds no more members.
const MaxZoneMembers = 800

// MaxFanout is the largest fan-out of a service.
const MaxFanout = 1 << 20

// Charter is what all peers of a swarm must agree on. The first peer makes it, and joining
// peers fetch it. Its Digest is part of the protocol prefix.
type Charter struct {
	V         int    `json:"v"`         // CharterVersion
	Name      string `json:"name"`      // of the swarm, 1 to 64 of [a-z0-9.-]
	Founder   string `json:"founder"`   // peer id of the first peer; its key signs changes
	Profile   int    `json:"profile"`   // KeyProfile
	Wire      int    `json:"wire"`      // WireVersion
	Mode      Mode   `json:"mode"`      // hash or geo
	SliceBits int    `json:"slicebits"` // 2^SliceBits hash slices, 1 to 20, default 12
	CellLevel int    `json:"celllevel"` // S2 level of geo slices, default 7; 0 in hash mode
	Replicas  int    `json:"replicas"`  // replicas per slice, 1 to 7, default 3
	// service -> units over which an instance's accounts are spread; 0 = each account is a unit
	Fanout    map[string]int `json:"fanout"`
	Suffixes  string         `json:"suffixes"`  // SuffixDigest of the public suffix list
	Gazetteer string         `json:"gazetteer"` // digest of the gazetteer; "" in hash mode
	// ZoneMax is the number of members above which a zone splits, at most MaxZoneMembers. 0:
	// there is always one zone.
	ZoneMax int `json:"zonemax,omitempty"`
	// Private: only a peer that shows an invite or the swarm's key may join.
	Private bool `json:"private,omitempty"`
	// Overrides says whose overrides of accounts peers accept: OverridesFounder or
	// OverridesMembers. "" means the members in a private swarm and the founder in an open one.
	Overrides string `json:"overrides,omitempty"`
}

// Values of Charter.Overrides.
const (
	OverridesFounder = "founder" // only the founder's
	OverridesMembers = "members" // every member's
)

// MembersOverrule reports whether every member may overrule the judge of accounts. Otherwise
// only the founder may.
func (c Charter) MembersOverrule() bool {
	if c.Overrides == "" {
		return c.Private
	}
	return c.Overrides == OverridesMembers
}

// DefaultCharter returns the charter that a first peer makes without other settings.
func DefaultCharter(name, founder string) Charter {
	return Charter{V: CharterVersion, Name: name, Founder: founder, Profile: KeyProfile, Wire: WireVersion,
		Mode: ModeHash, SliceBits: 12, Replicas: 3, Suffixes: SuffixDigest(),
		Fanout: map[string]int{"mastodon": 1, "bluesky": 0, "twitter": 0}}
}

// SuffixDigest identifies the public suffix list that this program was built with. Peers with
// another list would put some domains into other slices.
func SuffixDigest() string {
	sum := sha256.Sum256([]byte(publicsuffix.List.String()))
	return hex.EncodeToString(sum[:8])
}

// Validate returns all errors in c at once, or nil.
func (c Charter) Validate() error {
	var faults []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	check(c.V == CharterVersion, "v is %d, not %d", c.V, CharterVersion)
	check(validName(c.Name), "name %s is not 1 to 64 of [a-z0-9.-]", quote(c.Name))
	check(printableASCII(c.Founder, 128), "founder %s is no peer id", quote(c.Founder))
	check(c.Profile >= 1, "profile %d is below 1", c.Profile)
	check(c.Wire >= 1, "wire %d is below 1", c.Wire)
	check(c.SliceBits >= 1 && c.SliceBits <= MaxSliceBits, "slicebits %d is not 1 to %d", c.SliceBits, MaxSliceBits)
	check(c.Replicas >= 1 && c.Replicas <= 7, "replicas %d is not 1 to 7", c.Replicas)
	check(c.ZoneMax >= 0 && c.ZoneMax <= MaxZoneMembers, "zonemax %d is not 0 to %d", c.ZoneMax, MaxZoneMembers)
	check(c.Overrides == "" || c.Overrides == OverridesFounder || c.Overrides == OverridesMembers,
		"overrides %s is neither %s nor %s", quote(c.Overrides), OverridesFounder, OverridesMembers)
	check(printableASCII(c.Suffixes, 64), "suffixes %s is no digest", quote(c.Suffixes))
	switch c.Mode {
	case ModeHash:
		check(c.CellLevel == 0, "celllevel %d is not 0 in hash mode", c.CellLevel)
		check(c.Gazetteer == "", "gazetteer is not empty in hash mode")
	case ModeGeo:
		check(c.CellLevel >= 4 && c.CellLevel <= 12, "celllevel %d is not 4 to 12", c.CellLevel)
		check(printableASCII(c.Gazetteer, 64), "gazetteer %s is no digest", quote(c.Gazetteer))
	default:
		check(false, "mode %s is neither hash nor geo", quote(string(c.Mode)))
	}
	for _, service := range []string{"bluesky", "mastodon", "twitter"} {
		_, ok := c.Fanout[service]
		check(ok, "fanout of %s is missing", service)
	}
	const most = 16 // errors reported for a map that may come from anyone
	check(len(c.Fanout) <= most, "fanout has %d services", len(c.Fanout))
	for i, service := range slices.Sorted(maps.Keys(c.Fanout)) {
		if i == most {
			break
		}
		f := c.Fanout[service]
		check(service == "bluesky" || service == "mastodon" || service == "twitter", "fanout of unknown service %s",
			quote(service))
		check(f >= 0 && f <= MaxFanout, "fanout %d of %s is not 0 to %d", f, quote(service), MaxFanout)
	}
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("charter: %w", errors.Join(faults...))
}

// validName reports whether name is 1 to 64 of [a-z0-9.-].
func validName(name string) bool {
	for i := range len(name) {
		if classes[name[i]]&classHost == 0 || name[i] == '_' {
			return false
		}
	}
	return 1 <= len(name) && len(name) <= 64
}

// printableASCII reports whether s is 1 to most printable ASCII characters without spaces.
func printableASCII(s string, most int) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return 1 <= len(s) && len(s) <= most
}

// CheckLocal returns why this program cannot take part in the swarm of c, or nil. The charter may
// be invalid. Or a program with another profile, wire version or public suffix list made it. The
// caller that opens the gazetteer checks its digest.
func (c Charter) CheckLocal() error {
	if err := c.Validate(); err != nil {
		return err
	}
	var faults []error
	if c.Profile != KeyProfile {
		faults = append(faults, fmt.Errorf("the swarm uses key profile %d, this program %d", c.Profile, KeyProfile))
	}
	if c.Wire != WireVersion {
		faults = append(faults, fmt.Errorf("the swarm uses wire version %d, this program %d", c.Wire, WireVersion))
	}
	if own := SuffixDigest(); c.Suffixes != own {
		faults = append(faults, fmt.Errorf("the swarm uses public suffix list %s, this program %s", c.Suffixes, own))
	}
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("charter of another program: %w", errors.Join(faults...))
}

// Digest returns a hash over c's canonical encoding, as 32 hex digits. The encoding is its
// JSON, with fields in the order of the struct and fan-outs by name.
func (c Charter) Digest() string {
	if c.Fanout == nil {
		c.Fanout = map[string]int{}
	}
	text, err := json.Marshal(c)
	if err != nil {
		// A struct of strings, ints and one map of them always marshals.
		panic("partition: charter does not marshal: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// Contradicts describes in words where other differs from c, one difference each. It returns
// nil when they are the same charter.
func (c Charter) Contradicts(other Charter) []string {
	var out []string
	differ := func(field string, a, b any) {
		if a != b {
			out = append(out, fmt.Sprintf("%s is %v here and %v there", field, a, b))
		}
	}
	differ("v", c.V, other.V)
	differ("name", c.Name, other.Name)
	differ("founder", c.Founder, other.Founder)
	differ("profile", c.Profile, other.Profile)
	differ("wire", c.Wire, other.Wire)
	differ("mode", c.Mode, other.Mode)
	differ("slicebits", c.SliceBits, other.SliceBits)
	differ("celllevel", c.CellLevel, other.CellLevel)
	differ("replicas", c.Replicas, other.Replicas)
	differ("fanout", fanoutText(c.Fanout), fanoutText(other.Fanout))
	differ("suffixes", c.Suffixes, other.Suffixes)
	differ("gazetteer", c.Gazetteer, other.Gazetteer)
	differ("zonemax", c.ZoneMax, other.ZoneMax)
	differ("private", c.Private, other.Private)
	differ("overrides", c.Overrides, other.Overrides)
	return out
}

// fanoutText returns the fan-outs in words, in order of service.
func fanoutText(f map[string]int) string {
	var parts []string
	for _, service := range slices.Sorted(maps.Keys(f)) {
		parts = append(parts, fmt.Sprintf("%s=%d", service, f[service]))
	}
	return "{" + strings.Join(parts, " ") + "}"
}

// ZoneRule returns the rule for splitting the zones of c's swarm.
func (c Charter) ZoneRule() ZoneRule { return ZoneRule{Max: c.ZoneMax, Replicas: c.Replicas} }

// Slices lists all hash slices of the swarm in order. In both modes every Key has a registrar.
// Geo slices come from the gazetteer, see NewTableOf.
func (c Charter) Slices() []Slice {
	out := make([]Slice, 1<<c.SliceBits)
	for i := range out {
		out[i] = hashSlice(uint64(i)<<(64-c.SliceBits), c.SliceBits)
	}
	return out
}
