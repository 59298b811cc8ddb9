package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Errors that a Peer's functions wrap to choose the response's status. Any other error gives
// 500. An expired deadline gives 504.
var (
	ErrInvalid     = errors.New("not valid")           // 422: the request makes no sense
	ErrNotFound    = errors.New("not found")           // 404
	ErrUnavailable = errors.New("not available now")   // 503: try again later
	ErrNotBuilt    = errors.New("not built into this") // 501: this version cannot do it
)

// Peer has the functions that the API serves. Every function may be called concurrently and
// respects its context. For a nil function the API responds with 501.
type Peer struct {
	Status func(ctx context.Context) (Status, error)
	Peers  func(ctx context.Context) ([]PeerInfo, error)
	Owner  func(ctx context.Context, k partition.Key) (Owner, error)
	Show   func(ctx context.Context, k partition.Key) (Shown, error) // asks the owner
	// Overrule stores a person's verdict on whether an account belongs to the community of its
	// place. An empty verdict takes back an earlier one. An account that is not known yet is
	// admitted.
	Overrule func(ctx context.Context, o store.Override) error
	// Release makes the swarm look again at a Key in quarantine. Quarantine lists such Keys in
	// this peer's slices.
	Release    func(ctx context.Context, k partition.Key, by string) error
	Quarantine func(ctx context.Context) (Quarantine, error)
	// Again makes the swarm look at a known Key now.
	Again func(ctx context.Context, k partition.Key) error
	// Mistakes compares all such verdicts of the swarm with what the judge says.
	Mistakes func(ctx context.Context) (Mistakes, error)
	// Seed returns one answer for each key, in the order given. A failure for one key is an
	// answer, not an error.
	Seed  func(ctx context.Context, keys []partition.Key) ([]SeedAnswer, error)
	Query func(ctx context.Context, q Query) (Answer, error)
	// Copies returns the group of texts that contains the record of k, or that post of k.
	Copies func(ctx context.Context, k partition.Key, post string) (CopyGroup, error)
	// Recent returns at most n records that this peer fetched last, newest first (Score 0).
	Recent func(ctx context.Context, n int) ([]Hit, error)
	// Export calls fn for each record of the whole swarm, or of this peer alone, after the
	// cursor, in each peer's store order. It returns what is missing. rec may be reused after
	// fn returns. An error of fn ends the export and is returned.
	Export func(ctx context.Context, e Export, fn func(rec store.Record, cursor string) error) ([]Missing, error)
	Errors func(ctx context.Context) ([]Failure, error)
	Gaps   func(ctx context.Context, q GapQuery) (GapAnswer, error) // of the whole swarm
	// GeoJSON of members and what they own
	Map     func(ctx context.Context) (json.RawMessage, error)
	Metrics func() []Metric // read by GET /metrics
	Ready   func() error    // nil when the peer can serve
}

// Status is one peer's state: GET /api/v1/status.
type Status struct {
	ID      string `json:"id"`
	Swarm   string `json:"swarm"`
	Charter string `json:"charter"` // digest
	// how the peer was accepted into a private swarm
	Membership string   `json:"membership,omitempty"`
	Version    string   `json:"version"`
	Uptime     float64  `json:"uptime_s"`
	Fetched    int64    `json:"fetched"` // fetches that ended in a record, ever
	Requests   int64    `json:"requests"`
	Failed     int64    `json:"failed"`
	Records    int64    `json:"records"` // of the slices owned
	Keys       int64    `json:"keys"`
	Due        int64    `json:"due"`     // pending and due now
	Pending    int64    `json:"pending"` // admitted, never fetched
	Fetching   int      `json:"fetching"`
	Progress   Progress `json:"progress"`
	Outbox     int64    `json:"outbox"`
	// Keys of the owned slices that the peer leaves alone, because processes died while they
	// judged them
	Quarantined int64 `json:"quarantined"`
	Slices      int   `json:"slices"` // owned, and the peer acts in them now
	// owned, but no majority of the replicas leases them to the peer now, so it does not act
	SlicesAwaited int `json:"slices_awaited"`
	// of the swarm: the number in which all peers together act when the swarm is whole
	SlicesTotal int `json:"slices_total"`
	// slices of which this peer keeps a copy, including the owned ones
	SlicesKept int `json:"slices_kept"`
	// owned, and other peers should keep them
	SlicesMoving int `json:"slices_moving"`
	// owned, and a live replica's copy is behind
	SlicesReplicating int      `json:"slices_replicating"`
	Peers             int      `json:"peers"` // live members, including this one
	LinksOut          int64    `json:"links_out"`
	LinksIn           int64    `json:"links_in"`
	IndexLag          int64    `json:"index_lag"` // changes, and owned slices, not yet searchable
	Limits            []string `json:"limits"`    // the resource limits that hold now, in words
	// Sites wait for these IP addresses: other sites have the host lease, or the address's
	// owner gives no leases now. The list names a few of the latter, with the reason.
	AddressesWaiting int              `json:"addresses_waiting"`
	AddressesBlocked []string         `json:"addresses_blocked"`
	Stops            map[string]int64 `json:"stops"` // Keys that ended without a record, by reason
	// Repeated visits since the start, by outcome: unchanged, changed, error, gone, redirect
	Revisits map[string]int64 `json:"revisits,omitempty"`
	// Hints of sitemaps and feeds since the start: a page changed after it was fetched. They
	// are counted as heard, followed (the page is visited sooner), and right or wrong (by the
	// next visit).
	Hints map[string]int64 `json:"hints,omitempty"`
	// Memory is the memory of pages while they are read and judged.
	Memory Memory `json:"judge_memory"`
	// Budgets are this peer's rate budgets at servers whose API it used since its start, one
	// entry per limit.
	Budgets []Budget `json:"budgets,omitempty"`
	// Rejected lists this peer's tokens that their servers rejected at their last use.
	Rejected []Rejected `json:"rejected_tokens,omitempty"`
	// Rounds say how this peer visits again the kept posts that no timeline shows any more, one
	// entry per server.
	Rounds []Round `json:"rounds,omitempty"`
	// Streams are the streams that report new posts to this peer.
	Streams []Stream `json:"streams,omitempty"`
	// share of the records whose page was gone or did not respond at the last visit
	Dead      float64 `json:"dead_share"`
	DiskBytes int64   `json:"disk_bytes"`
	// Media is the number of fetched files of accounts, and MediaBytes is their size. Each URL
	// counts.
	Media      int64 `json:"media_files,omitempty"`
	MediaBytes int64 `json:"media_bytes,omitempty"`
	// records and posts in this peer's index that can be compared with copies
	Fingerprints int64 `json:"fingerprints"`
	Idle         bool  `json:"idle"`
	// Trash counts copies of slices that were dropped and are kept a while (run --undelete).
	Trash Trash `json:"trash"`
	// Clock lists peers whose rows have a fetch time more than five minutes in the future. Such
	// rows are left out until that time. One of the two clocks is wrong.
	Clock []ClockAhead `json:"clock,omitempty"`
	// Verdicts counts the accounts of the owned slices by verdict: in, out, undecided.
	Verdicts map[string]int64 `json:"verdicts,omitempty"`
	// Languages counts the records and posts in this peer's index by language: pt-pt, pt-br, or
	// pt where the variety is not known.
	Languages map[string]int64 `json:"languages,omitempty"`
}

// Progress says how far a peer is with the Keys that it knows. More Keys may be found.
type Progress struct {
	// share of the Keys in the owned slices that do not wait for their first fetch; 0 to 1
	Done float64 `json:"done_share"`
	Rate float64 `json:"fetched_per_s"` // mean of the last minute
	// seconds, at that rate, until all known Keys are fetched; 0 if nothing is fetched now
	Left float64 `json:"left_s,omitempty"`
}

// Text returns the progress in a few words, or "" when no Key is known.
func (p Progress) Text() string {
	if p.Done == 0 && p.Rate == 0 {
		return ""
	}
	text := fmt.Sprintf("%.1f %% done, %.1f a second", 100*p.Done, p.Rate)
	if p.Left > 0 {
		text += ", about " + (time.Duration(min(p.Left, 1e9)) * time.Second).String() + " left for what is known"
	}
	return text
}

// StopText says what a person can do about Keys that stopped for a reason in Status.Stops or
// SiteState.Stops. It returns the reason itself when there is nothing to add.
func StopText(reason string) string {
	switch reason {
	case "contact":
		return "contact: run with --contact MAIL-OR-URL, so that site owners can reach you; until then only loopback is crawled"
	case "port":
		return "port: a port below 1024 other than 80 and 443, or one that browsers refuse; --allow-port allows the former"
	case "private":
		return "private: an address of a private network; --allow-net CIDR allows it"
	case "robots":
		return "robots: the site's robots.txt does not allow it"
	case "depth":
		return "depth: too many links away from a seed (--max-depth)"
	}
	return reason
}

// Round says how a server's kept posts are visited again. It covers the accounts and timelines
// visited since the start.
type Round struct {
	Site  partition.Site `json:"site"`
	Keys  int            `json:"keys"`
	Posts int            `json:"posts"` // of these Keys
	// seconds in which each post is visited once: the longest period of all Keys
	Period float64 `json:"period"`
	// Keys whose round takes more than twice as long as it should; the ledger of gaps has them
	Late int `json:"late,omitempty"`
}

// Rejected is a token that its server does not accept.
type Rejected struct {
	Site       partition.Site `json:"site"`
	Credential string         `json:"credential"` // its name
	Since      time.Time      `json:"since"`
	Said       string         `json:"said,omitempty"` // by the server
}

// Trash counts the copies of slices that were dropped.
type Trash struct {
	Slices int   `json:"slices"`
	Bytes  int64 `json:"bytes"`
	Wanted int   `json:"wanted,omitempty"` // about to be restored
}

// ClockAhead says by how much a peer's clock seems to be ahead. Peer "" is a peer that sent
// rows to this peer.
type ClockAhead struct {
	Peer    string  `json:"peer"`
	Seconds float64 `json:"ahead_s"`
}

// ShownLanguages is the number of languages that a peer shows to people and monitors.
const ShownLanguages = 12

// TopLanguages returns the n most frequent of Languages, the most frequent first.
func (s *Status) TopLanguages(n int) []string {
	langs := slices.SortedFunc(maps.Keys(s.Languages), func(a, b string) int {
		return cmp.Or(cmp.Compare(s.Languages[b], s.Languages[a]), cmp.Compare(a, b))
	})
	return langs[:min(n, len(langs))]
}

// Memory is the memory limit for pages that are read and judged (run --judge-memory).
type Memory struct {
	Limit int64 `json:"limit"` // bytes
	Held  int64 `json:"held"`
	Most  int64 `json:"most"` // the most held at once since the start
}

// Budget is the state of one limit of a server for one credential of this peer.
type Budget struct {
	Site partition.Site `json:"site"`
	// name of the credential; "" = none, "@address" = for the address with any credential
	Credential string  `json:"credential"`
	Bucket     string  `json:"bucket"`
	Limit      int64   `json:"limit"`    // in a window
	Used       int64   `json:"used"`     // part of the limit used, including requests under way
	Open       int64   `json:"open"`     // requests under way
	Window     float64 `json:"window_s"` // 0 = the server says when it ends
	// Paced: the server does not report its limits. Then Limit is what this peer found out by
	// sending requests at even gaps, and Used is the number of requests under way.
	Paced    bool       `json:"paced,omitempty"`
	ResetsAt *time.Time `json:"resets_at,omitempty"`
	Calls    int64      `json:"calls"` // of the credential at the site, ever
	// calls that the server refused because of its limits
	Refused int64  `json:"refused"`
	Held    string `json:"held,omitempty"` // why nothing is sent now, and until when
}

// Stream is a stream of a service, as this peer reads it. Counts are since the start.
type Stream struct {
	Address        string     `json:"address"`
	ConnectedSince *time.Time `json:"connected_since,omitempty"` // nil = not connected
	Accounts       int        `json:"accounts"`                  // subscribed accounts
	Connects       int64      `json:"connects"`                  // attempts
	Events         int64      `json:"events"`
	// received data that was no event, on connections that have ended
	Bad int64 `json:"bad"`
	// events that no visit of their account could process in time
	Lost      int64      `json:"lost"`
	LastEvent *time.Time `json:"last_event,omitempty"`
	Why       string     `json:"why,omitempty"` // why it is not connected
}

// PeerInfo is one member: GET /api/v1/peers.
type PeerInfo struct {
	partition.Member
	State  string `json:"state"` // alive, gone (kept for orphan-after)
	Slices int    `json:"slices"`
	Self   bool   `json:"self,omitempty"`
	// how the responding peer limits it: told to wait, slowed, cut off
	Credit string  `json:"credit,omitempty"`
	Status *Status `json:"status,omitempty"` // nil when it did not respond
}

// Owner says which peers crawl a Key.
type Owner struct {
	Key      partition.Key  `json:"key"`
	Site     partition.Site `json:"site"`
	Slice    string         `json:"slice"`
	Replicas []string       `json:"replicas"` // the owner first
	Addrs    []string       `json:"addrs"`
	Self     bool           `json:"self"`
}

// Shown is what the swarm knows of a Key.
type Shown struct {
	Key   partition.Key `json:"key"`
	Owner string        `json:"owner"`
	Known bool          `json:"known"`
	Slice string        `json:"slice,omitempty"` // the slice of the Key
	State string        `json:"state,omitempty"` // pending, done, gone, refused, placed
	DueAt *time.Time    `json:"due_at,omitempty"`
	// why it is visited again then: the policy's reason
	DueWhy   string `json:"due_why,omitempty"`
	Why      string `json:"why,omitempty"`
	Depth    int    `json:"depth"`
	Attempts int    `json:"attempts"`
	// Placement says where its host or account was placed, with the evidence (geo mode).
	Placement json.RawMessage `json:"placement,omitempty"`
	Record    *store.Record   `json:"record,omitempty"`
	Site      *SiteState      `json:"site,omitempty"` // nil: nothing was ever fetched there
	Held      *AccountSummary `json:"held,omitempty"` // for an account, a list or a timeline
	// Overrides are persons' verdicts on an account, in order.
	Overrides []store.Override `json:"overrides,omitempty"`
}

// AccountSummary says what is kept of an account, list or timeline in addition to its record.
type AccountSummary struct {
	Posts   int  `json:"posts"`          // including tombstones
	Deleted int  `json:"deleted"`        // tombstones
	More    bool `json:"more,omitempty"` // there are more than were counted
	// the newest posts, without tombstones and the services' own objects
	Latest []store.Record `json:"latest"`
	Lists  []ListSummary  `json:"lists"`
	Gaps   []store.Gap    `json:"gaps"` // the newest
}

// ListSummary says what is kept of a list of accounts.
type ListSummary struct {
	List     partition.Key `json:"list"`
	Now      int           `json:"now"`  // members now, as far as is known
	Ever     int           `json:"ever"` // accounts that were ever members
	More     bool          `json:"more,omitempty"`
	Walks    int           `json:"walks"`
	Complete *store.Walk   `json:"complete,omitempty"` // the last complete reading
	Last     *store.Walk   `json:"last,omitempty"`
}

// Mistakes is GET /api/v1/overrides. It compares the judge of a community with the verdicts
// that persons gave on the same accounts.
type Mistakes struct {
	Overrides int       `json:"overrides"` // accounts for which a person's verdict holds
	Judged    int       `json:"judged"`    // of those, the accounts that a judge has seen too
	Agreed    int       `json:"agreed"`    // of those, the accounts with the same verdict
	Undecided int       `json:"undecided"` // the judge could not decide
	Mistakes  []Mistake `json:"mistakes"`  // the judge says the opposite
	// Kinds says for each kind of evidence by how much, in nats, it supported the mistakes. The
	// largest value is what to look at first.
	Kinds   map[string]float64 `json:"kinds"`
	Missing []Missing          `json:"missing"`
}

// Mistake is an account where the judge's verdict is the opposite of a person's.
type Mistake struct {
	Override store.Override   `json:"override"`
	Judged   store.Judged     `json:"judged"`
	Evidence []store.Evidence `json:"evidence"`
}

// GapQuery holds the parameters of GET /api/v1/gaps.
type GapQuery struct {
	Site         string
	Since, Until time.Time // when a gap was found
	Limit        int
	Cursor       string
	Local        bool
}

// GapAnswer is a part of the ledger, in order of slice, site, Key and time.
type GapAnswer struct {
	Gaps    []store.Gap `json:"gaps"`
	Missing []Missing   `json:"missing"`
	Cursor  string      `json:"cursor,omitempty"` // set when there is more
}

// SiteState is the state of the crawl of one site, as its owner knows it.
type SiteState struct {
	Site   partition.Site `json:"site"`
	Domain string         `json:"domain"` // the site's registrable domain
	// number of the domain's sites that share one pace, 0 = no limit
	DomainSites int        `json:"domain_sites"`
	Fetched     int64      `json:"fetched"`                // pages, ever
	NextAllowed *time.Time `json:"next_allowed,omitempty"` // no request before
	// the gap that the site asks for, 0 = ours
	Delay   float64 `json:"delay_seconds"`
	BackOff float64 `json:"back_off_seconds"`  // after 429 or 503
	Stopped string  `json:"stopped,omitempty"` // why nothing of it is fetched
	// the site's Keys, and links on its pages, that were stopped, by reason
	Stops map[string]int64 `json:"stops"`
}

// SeedAnswer is the result for one seed.
type SeedAnswer struct {
	Key    string `json:"key"`
	Answer string `json:"answer"` // admitted, known, refused, queued
	Reason string `json:"reason,omitempty"`
	Owner  string `json:"owner,omitempty"`
}

// Query holds the parameters of GET /api/v1/query.
type Query struct {
	Q      string
	Kind   string
	Lang   string
	Site   string
	Since  time.Time
	Until  time.Time
	Facets        // what the judges found
	Limit  int    // default 10, at most 1000
	Cursor string // from the last response
	Unfold bool   // copies of a hit are hits themselves
	// Timeout is how long the peer waits for other peers, at most 25 s; 0 is the peer's own
	// setting.
	Timeout time.Duration
}

// Hit is one result.
type Hit struct {
	Key       partition.Key `json:"key"`
	Post      string        `json:"post,omitempty"` // the URI, if the hit is a post of Key
	Kind      string        `json:"kind"`
	Title     string        `json:"title"`
	Snippet   string        `json:"snippet"`
	Score     float64       `json:"score"`
	Place     string        `json:"place,omitempty"`
	Lang      string        `json:"lang,omitempty"`
	Time      *time.Time    `json:"time,omitempty"`
	Peer      string        `json:"peer"`
	FetchedAt time.Time     `json:"fetched_at"`
	// the time that the text is about, as in Facets.Scope
	Period  string `json:"period,omitempty"`
	Verdict string `json:"verdict,omitempty"` // of an account
	// Copies are hits below this one with the same or nearly the same text.
	Copies []Copy `json:"copies,omitempty"`

	// Print is the fingerprint that identifies copies, for the code that folds them. It is no
	// part of the response.
	Print []byte `json:"-"`
}

// Copy is a hit that says the same as another one; see crawler/judge/duplicates.
type Copy struct {
	Key       partition.Key `json:"key"`
	Post      string        `json:"post,omitempty"`
	Title     string        `json:"title"`
	Score     float64       `json:"score"`
	Peer      string        `json:"peer"`
	FetchedAt time.Time     `json:"fetched_at"`
	Reason    string        `json:"reason"`   // exact, simhash, edit
	Distance  int           `json:"distance"` // in bits or words, depending on the reason
}

// CopyGroup is GET /api/v1/copies: the texts of the whole swarm that say the same as one text.
type CopyGroup struct {
	Key  partition.Key `json:"key"`
	Post string        `json:"post,omitempty"`
	// the page of which this one declares to be a copy; the group is that page's
	Canonical partition.Key `json:"canonical,omitempty"`
	Why       string        `json:"why,omitempty"` // why the text is not compared with others
	// name of the group, the same for each peer and each member
	Group string `json:"group,omitempty"`
	// Members are all texts of the group, the representative first. That is the text published
	// first; among texts without a date, the one with the shorter address. Members is empty
	// when no other text is like it.
	Members  []GroupMember `json:"members"`
	More     bool          `json:"more,omitempty"` // a limit was reached, so there may be others
	Coverage Coverage      `json:"coverage"`
	TookMS   float64       `json:"took_ms"`
}

// GroupMember is one text of a CopyGroup.
type GroupMember struct {
	Key       partition.Key `json:"key"`
	Post      string        `json:"post,omitempty"`
	Title     string        `json:"title"`
	Peer      string        `json:"peer"`
	FetchedAt time.Time     `json:"fetched_at"`
	Reason    string        `json:"reason"` // representative, exact, official, simhash, edit
	// to the representative, in bits or words, depending on the reason
	Distance int `json:"distance"`
}

// Missing is a part of the swarm that did not respond (I8).
type Missing struct {
	Peer   string `json:"peer"`
	Reason string `json:"reason"`
	Slices int    `json:"slices"`
}

// Coverage says how much of the swarm a response covers.
type Coverage struct {
	SlicesAnswered int `json:"slices_answered"`
	SlicesTotal    int `json:"slices_total"`
	// a record fetched a moment ago may not be found yet
	Stale   bool      `json:"stale,omitempty"`
	Missing []Missing `json:"missing"`
}

// Answer is the response to a query.
type Answer struct {
	Hits     []Hit    `json:"hits"`
	Total    uint64   `json:"total_estimate"`
	Coverage Coverage `json:"coverage"`
	TookMS   float64  `json:"took_ms"`
	Cursor   string   `json:"cursor,omitempty"`
	// parts of the query that may have been understood differently than meant
	Notes []string `json:"notes,omitempty"`
}

// Export holds the parameters of GET /api/v1/export.
type Export struct {
	Kind, Lang, Site string
	Since, Until     time.Time
	Facets                  // what the judges found
	Cursor           string // of the last record received: resume after it
	Local            bool   // this peer's records only
	Captures         bool   // records come with what is kept of their visits, including bodies
}

// Failure is one Key that ended without a record, or is being retried.
type Failure struct {
	Key    partition.Key `json:"key"`
	State  string        `json:"state"`
	Reason string        `json:"reason"`
	At     time.Time     `json:"at"`
}

// Metric is one sample for Prometheus.
type Metric struct {
	Name   string // echo_..., counters end in _total
	Help   string
	Kind   string // counter or gauge
	Value  float64
	Labels map[string]string
}

// Gauge returns a sample of a value that rises and falls.
func Gauge[V int | int64 | float64](name, help string, v V) Metric {
	return Metric{Name: name, Help: help, Kind: "gauge", Value: float64(v)}
}

// Counter returns a sample of a value that only rises.
func Counter(name, help string, v int64) Metric {
	return Metric{Name: name, Help: help, Kind: "counter", Value: float64(v)}
}

// Counters returns one counter for each entry of counts, with its key as the value of label.
func Counters[V int64 | uint64](name, help, label string, counts map[string]V) (out []Metric) {
	for k, v := range counts {
		out = append(out, Metric{Name: name, Help: help, Kind: "counter", Value: float64(v),
			Labels: map[string]string{label: k}})
	}
	return out
}
