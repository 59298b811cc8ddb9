package fetch

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// Token is the product token that a robots.txt group uses for this program.
const Token = "echo-node"

// Names of the limits in LimitError and Response.Truncated.
const (
	LimitBody      = "body-size"
	LimitHeader    = "header-size"
	LimitTotal     = "total-time"
	LimitIdle      = "idle-time"
	LimitExpansion = "expansion"
	LimitEncodings = "encodings"
	LimitWire      = "wire-size"         // bytes received for one response, of any kind
	LimitOverhead  = "encoding-overhead" // bytes of a Content-Encoding that hold no content
	LimitChunks    = "chunk-framing"     // chunk bytes that are not data; net/http sets the bound
	LimitFields    = "header-fields"     // fields of one header
	LimitRules     = "robots-rules"      // rules for this program in one robots.txt
	LimitPattern   = "robots-pattern"    // bytes of one rule
	LimitSteps     = "robots-steps"      // work to check one URL against one robots.txt
)

// Limits that are not options.
const (
	maxRobotsBody      = 500 << 10 // RFC 9309 section 2.5
	maxRobotsRedirects = 5         // RFC 9309 section 2.3.1.2
	robotsFresh        = 24 * time.Hour
	maxSitemaps        = 100     // named in one robots.txt
	maxEncodings       = 2       // layers of Content-Encoding
	expansionFloor     = 1 << 20 // decoded bytes below which the ratio is not checked
	overheadFloor      = 1 << 20 // received bytes of an encoded body that may hold no content
	maxZstdWindow      = 8 << 20 // RFC 8878 section 3.1.1.1.2
	maxNames           = 50_000  // names in the DNS cache
	maxAddrs           = 100_000 // addresses whose pace is kept
	maxDials           = 8       // addresses of one name that are tried
	maxDead            = 10_000  // addresses in graves, each for deadFor
	deadFor            = 5 * time.Minute
	maxFields          = 1000 // fields in the header of one response
)

// Options configures New. The zero value of a limit means its default.
type Options struct {
	Version string // in the User-Agent header, default "dev"
	// Contact is a mail address or URL in the User-Agent header. It is required before any request
	// to an address that is not loopback.
	Contact  string
	AllowNet []netip.Prefix // private networks that are allowed, default none
	// FromAddr is the source address of requests. By default the system chooses it.
	FromAddr netip.Addr
	// Hosts are fixed addresses of names, used before DNS (tests, demos).
	Hosts map[string]netip.Addr

	MaxBody      int64         // bytes of a decoded body, the rest is cut off; default 16 MiB
	MaxHeader    int64         // bytes of the response header; default 256 KiB
	MaxExpansion int64         // decoded bytes per received byte, checked above 1 MiB; default 250
	Total        time.Duration // for one request, connecting included; default 60 s
	Idle         time.Duration // without a byte of the response; default 15 s
	Connect      time.Duration // to connect, and for the TLS handshake; default 10 s
	NameTTL      time.Duration // how long an address from DNS is cached; default 5 min
	AllowPorts   []PortRange   // allowed ports below 1024 besides 80 and 443; default none
	// AddrDelay is the least gap between two requests to one IP address. The default is 1 s, and
	// none for loopback. Negative = no gap; positive = also for loopback.
	AddrDelay time.Duration

	// DialDelay is the least gap between two connections to one IP address if AddrDelay is
	// negative. Something else then sets the pace of requests, but a stranger's name still cannot
	// make this client dial an address without its turn. The default is 1 s, and none for loopback.
	// Negative = no gap; positive = also for loopback.
	DialDelay time.Duration

	// Share coordinates the pace of an address with other peers that have hosts at that address.
	// The client calls it in addition to its own pace. nil = only this peer sends requests.
	Share *Share

	// Transport answers requests in tests instead of the network. Nothing is dialled, so the guard
	// checks nothing. Default: an http.Transport of the client.
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

// validate reports all faults of o together.
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

// notInHeader reports whether r is not allowed in the User-Agent comment.
func notInHeader(r rune) bool { return r < 0x20 || r > 0x7e || r == '(' || r == ')' }

// agent returns the value of the User-Agent header.
func (o Options) agent() string {
	if o.Contact == "" {
		return Token + "/" + o.Version
	}
	return Token + "/" + o.Version + " (+" + o.Contact + ")"
}
