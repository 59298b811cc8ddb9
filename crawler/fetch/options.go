package fetch

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// Token is the product token of robots.txt groups meant for this program.
const Token = "echo-node"

// The names of the limits, as LimitError and Response.Truncated give them.
const (
	LimitBody      = "body-size"
	LimitHeader    = "header-size"
	LimitTotal     = "total-time"
	LimitIdle      = "idle-time"
	LimitExpansion = "expansion"
	LimitEncodings = "encodings"
	LimitWire      = "wire-size"         // bytes received for one answer, whatever they were
	LimitOverhead  = "encoding-overhead" // bytes of a Content-Encoding that hold no content
	LimitChunks    = "chunk-framing"     // bytes of chunks that are not data: the bound of net/http
	LimitFields    = "header-fields"     // fields of one header
	LimitRules     = "robots-rules"      // rules of one robots.txt that are for this program
	LimitPattern   = "robots-pattern"    // bytes of one rule
	LimitSteps     = "robots-steps"      // work of judging one address by one robots.txt
)

// Caps that are not options.
const (
	maxRobotsBody      = 500 << 10 // RFC 9309 section 2.5
	maxRobotsRedirects = 5         // RFC 9309 section 2.3.1.2
	robotsFresh        = 24 * time.Hour
	maxSitemaps        = 100     // named in one robots.txt
	maxEncodings       = 2       // layers of Content-Encoding
	expansionFloor     = 1 << 20 // decoded bytes below which the ratio is not looked at
	overheadFloor      = 1 << 20 // received bytes of an encoded body below which they may hold nothing
	maxZstdWindow      = 8 << 20 // RFC 8878 section 3.1.1.1.2
	maxNames           = 50_000  // names in the DNS cache
	maxAddrs           = 100_000 // addresses whose pace is kept
	maxDials           = 8       // addresses of one name that are tried
	maxDead            = 10_000  // addresses where nobody was found, remembered for
	deadFor            = 5 * time.Minute
	maxFields          = 1000 // of one answer's header
)

// Options of New. Every limit's zero value is its default.
type Options struct {
	Version string // in the user agent, default "dev"
	// mail address or URL in the user agent; required before anything but loopback is asked
	Contact  string
	AllowNet []netip.Prefix        // private networks that may be reached, default none
	FromAddr netip.Addr            // source address of requests, default the system's choice
	Hosts    map[string]netip.Addr // fixed addresses of names, asked before DNS (tests, demos)

	MaxBody      int64         // bytes of a decoded body, the rest is cut off; default 16 MiB
	MaxHeader    int64         // bytes of the answer's header; default 256 KiB
	MaxExpansion int64         // decoded bytes for one received byte, above 1 MiB; default 250
	Total        time.Duration // of one request, connecting included; default 60 s
	Idle         time.Duration // without a byte of the answer; default 15 s
	Connect      time.Duration // to connect, and for TLS; default 10 s
	NameTTL      time.Duration // an address found by DNS is kept that long; default 5 min
	AllowPorts   []PortRange   // ports below 1024 that may be asked beside 80 and 443; default none
	// least gap between two requests to one IP address; default 1 s, none for loopback; <0 = none, >0 also for loopback
	AddrDelay time.Duration

	// DialDelay is the least gap between two connections to one IP address where AddrDelay is negative: requests then
	// have another pace, but no stranger's name has an address dialled without its turn. Default 1 s, none for
	// loopback; <0 = none, >0 also for loopback.
	DialDelay time.Duration

	// Share is asked beside the pace of this peer, for an address that hosts of
	// several peers live on. nil = this peer alone asks.
	Share *Share

	// Transport answers instead of the network, for tests: nothing is dialled, so
	// the guard of dials sees nothing. Default: an own http.Transport.
	Transport http.RoundTripper
}

func (o Options) withDefaults() Options {
	set := func(p *int64, v int64) {
		if *p == 0 {
			*p = v
		}
	}
	wait := func(p *time.Duration, v time.Duration) {
		if *p == 0 {
			*p = v
		}
	}
	if o.Version == "" {
		o.Version = "dev"
	}
	set(&o.MaxBody, 16<<20)
	set(&o.MaxHeader, 256<<10)
	set(&o.MaxExpansion, 250)
	wait(&o.Total, 60*time.Second)
	wait(&o.Idle, 15*time.Second)
	wait(&o.Connect, 10*time.Second)
	wait(&o.NameTTL, 5*time.Minute)
	return o
}

func (o Options) validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("fetch: "+format, args...)) }
	if o.MaxBody < 0 || o.MaxHeader < 0 || o.MaxExpansion < 0 {
		bad("negative limit: MaxBody %d, MaxHeader %d, MaxExpansion %d", o.MaxBody, o.MaxHeader, o.MaxExpansion)
	}
	if o.Total < 0 || o.Idle < 0 || o.Connect < 0 || o.NameTTL < 0 {
		bad("negative time: Total %v, Idle %v, Connect %v, NameTTL %v", o.Total, o.Idle, o.Connect, o.NameTTL)
	}
	if strings.ContainsFunc(o.Contact, notInHeader) || strings.ContainsFunc(o.Version, notInHeader) {
		bad("contact %q or version %q cannot stand in a header", o.Contact, o.Version)
	}
	errs = append(errs, portFaults(o.AllowPorts)...)
	for _, p := range o.AllowNet {
		if !p.IsValid() {
			bad("invalid network in AllowNet")
		}
	}
	for name, a := range o.Hosts {
		if !a.IsValid() {
			bad("host %q has no valid address", name)
		}
	}
	return errors.Join(errs...)
}

func notInHeader(r rune) bool { return r < 0x20 || r > 0x7e || r == '(' || r == ')' }

// agent is the value of the User-Agent header.
func (o Options) agent() string {
	if o.Contact == "" {
		return Token + "/" + o.Version
	}
	return Token + "/" + o.Version + " (+" + o.Contact + ")"
}
