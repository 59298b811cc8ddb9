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

// Errors that a Peer's functions wrap to choose the answer's status. Any other
// error is a 500, a deadline that passed is a 504.
var (
	ErrInvalid     = errors.New("not valid")           // 422: what was asked makes no sense
	ErrNotFound    = errors.New("not found")           // 404
	ErrUnavailable = errors.New("not available now")   // 503: try again later
	ErrNotBuilt    = errors.New("not built into this") // 501: this version of the program cannot do it
)

// Peer is what the API serves. Every function may be called concurrently and
// respects its context. A nil function answers 501.
type Peer struct {
	Status func(ctx context.Context) (Status, error)
	Peers  func(ctx context.Context) ([]PeerInfo, error)
	Owner  func(ctx context.Context, k partition.Key) (Owner, error)
	Show   func(ctx context.Context, k partition.Key) (Shown, error) // asks the owner
	// Overrule takes a person's word on whether an account belongs to where the account is: an
	// empty verdict takes back what was said. Who is not known yet is admitted.
	Overrule func(ctx context.Context, o store.Override) error
	// Release has a Key in quarantine looked at again; Quarantine lists those of this peer's slices.
	Release    func(ctx context.Context, k partition.Key, by string) error
	Quarantine func(ctx context.Context) (Quarantine, error)
	// Again has a Key that is known looked at now.
	Again func(ctx context.Context, k partition.Key) error
	// Mistakes holds all such words of the swarm against what the judge says.
	Mistakes func(ctx context.Context) (Mistakes, error)
	// Seed answers each key, in the order given; a failure of one is an answer,
	// not an error.
	Seed  func(ctx context.Context, keys []partition.Key) ([]SeedAnswer, error)
	Query func(ctx context.Context, q Query) (Answer, error)
	// Copies is the group of texts that the record of k, or that post of it, is in.
	Copies func(ctx context.Context, k partition.Key, post string) (CopyGroup, error)
	// Recent is at most n records this peer fetched last, newest first (Score 0).
	Recent func(ctx context.Context, n int) ([]Hit, error)
	// Export calls fn for each record of the whole swarm (or of this peer alone)
	// after the cursor, in store order of each peer; it returns what is missing.
	// rec may be reused after fn returns. An error of fn ends it and is returned.
	Export  func(ctx context.Context, e Export, fn func(rec store.Record, cursor string) error) ([]Missing, error)
	Errors  func(ctx context.Context) ([]Failure, error)
	Gaps    func(ctx context.Context, q GapQuery) (GapAnswer, error) // of the whole swarm
	Map     func(ctx context.Context) (json.RawMessage, error)       // GeoJSON of members and what they own
	Metrics func() []Metric                                          // read by GET /metrics
	Ready   func() error                                             // nil when the peer can serve
}

// Status is one peer's state: GET /api/v1/status.
type Status struct {
	ID         string   `json:"id"`
	Swarm      string   `json:"swarm"`
	Charter    string   `json:"charter"`              // digest
	Membership string   `json:"membership,omitempty"` // how the peer came into a private swarm
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
	// Keys of the slices owned that are left alone, because processes died while they judged them
	Quarantined int64 `json:"quarantined"`
	Slices      int   `json:"slices"` // owned and acted in now
	// owned, not acted in: no majority of their replicas leases them now
	SlicesAwaited int `json:"slices_awaited"`
	// of the swarm: as many as are acted in by all peers together when it is whole
	SlicesTotal       int      `json:"slices_total"`
	SlicesKept        int      `json:"slices_kept"`        // of which a copy is kept, the owned ones among them
	SlicesMoving      int      `json:"slices_moving"`      // owned, and others should keep them
	SlicesReplicating int      `json:"slices_replicating"` // owned, and a live replica's copy is behind
	Peers             int      `json:"peers"`              // live members, this one included
	LinksOut          int64    `json:"links_out"`
	LinksIn           int64    `json:"links_in"`
	IndexLag          int64    `json:"index_lag"` // changes, and owned slices, not yet searchable
	Limits            []string `json:"limits"`    // which volunteer limit holds right now, in words
	// IP addresses that sites wait for: because it is the turn of other sites, or
	// because, in words, their owner gives no turns now; a few of those are named.
	AddressesWaiting int              `json:"addresses_waiting"`
	AddressesBlocked []string         `json:"addresses_blocked"`
	Stops            map[string]int64 `json:"stops"` // Keys that ended without a record, by reason
	// visits of what had been fetched before, since the start, by outcome: unchanged, changed, error, gone, redirect
	Revisits map[string]int64 `json:"revisits,omitempty"`
	// Hints of sitemaps and feeds that a page changed after it was fetched, since the start:
	// heard, followed (it is looked at sooner), and by the visit after them right or wrong.
	Hints map[string]int64 `json:"hints,omitempty"`
	// Memory is what pages take while they are read and judged.
	Memory Memory `json:"judge_memory"`
	// Budgets are this peer's at the servers whose API it asked since its start, a line for each limit.
	Budgets []Budget `json:"budgets,omitempty"`
	// Rejected are this peer's tokens that their servers rejected when they were used last.
	Rejected []Rejected `json:"rejected_tokens,omitempty"`
	// Rounds are how this peer looks again at the posts that it keeps and no reading shows any more, a line for each
	// server.
	Rounds []Round `json:"rounds,omitempty"`
	// Streams are those that tell this peer of posts as they are made.
	Streams []Stream `json:"streams,omitempty"`
	// of the records: their page was gone or did not answer when it was looked at last
	Dead      float64 `json:"dead_share"`
	DiskBytes int64   `json:"disk_bytes"`
	// Media are the files of accounts that were had, and MediaBytes how large they are, each URL counted.
	Media      int64 `json:"media_files,omitempty"`
	MediaBytes int64 `json:"media_bytes,omitempty"`
	Prints     int64 `json:"prints"` // records and posts in this peer's index that can meet copies
	Idle       bool  `json:"idle"`
	// Trash are copies of slices that were dropped and are kept a while (run --undelete).
	Trash Trash `json:"trash"`
	// Clock lists peers whose rows say that they were fetched more than five minutes in the
	// future: those rows are left out until then. One of the two clocks is wrong.
	Clock []ClockAhead `json:"clock,omitempty"`
	// Verdicts counts the accounts of the slices owned here by their verdict: in, out, undecided.
	Verdicts map[string]int64 `json:"verdicts,omitempty"`
	// Languages counts the records and posts in this peer's index by language: pt-pt, pt-br, pt where the variety is
	// not known.
	Languages map[string]int64 `json:"languages,omitempty"`
}

// Progress is how far a peer is with the Keys that it knows of. More may be found.
type Progress struct {
	// of the Keys of the slices owned, those that do not wait for their first fetch; 0 to 1
	Done float64 `json:"done_share"`
	Rate float64 `json:"fetched_per_s"` // mean of the last minute
	// seconds, at that rate, until all known Keys are fetched; 0 where nothing is fetched now
	Left float64 `json:"left_s,omitempty"`
}

// Text is the progress in a few words; "" where no Key is known.
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

// StopText says what a person can do about Keys that stopped for a reason, as
// Status.Stops and SiteState.Stops name it; the reason itself where there is no more to say.
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

// Round is how kept posts of a server are looked at again, of the accounts and timelines that were visited since the
// start.
type Round struct {
	Site  partition.Site `json:"site"`
	Keys  int            `json:"keys"`
	Posts int            `json:"posts"` // of these
	// seconds in which each of them is looked at once: the longest of all keys
	Period float64 `json:"period"`
	// keys whose round takes more than twice as long as it should; the ledger of gaps has them
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
	Wanted int   `json:"wanted,omitempty"` // about to be given back
}

// ClockAhead is by how much a peer's clock seems to be ahead; peer "" is one that brought rows to this peer.
type ClockAhead struct {
	Peer    string  `json:"peer"`
	Seconds float64 `json:"ahead_s"`
}

// ShownLanguages is how many languages a peer tells people and monitors of.
const ShownLanguages = 12

// TopLanguages are the n most frequent of Languages, the most frequent first.
func (s *Status) TopLanguages(n int) []string {
	langs := slices.SortedFunc(maps.Keys(s.Languages), func(a, b string) int {
		return cmp.Or(cmp.Compare(s.Languages[b], s.Languages[a]), cmp.Compare(a, b))
	})
	return langs[:min(n, len(langs))]
}

// Memory is the budget of pages being read and judged (run --judge-memory).
type Memory struct {
	Limit int64 `json:"limit"` // bytes
	Held  int64 `json:"held"`
	Most  int64 `json:"most"` // held at once since the start
}

// Budget is one limit of a server, as it stands for one credential of this peer.
type Budget struct {
	Site partition.Site `json:"site"`
	// its name; "" = none, "@address" = for the address, whatever the credential
	Credential string  `json:"credential"`
	Bucket     string  `json:"bucket"`
	Limit      int64   `json:"limit"`    // in a window
	Used       int64   `json:"used"`     // of it, what is on its way among that
	Open       int64   `json:"open"`     // on its way
	Window     float64 `json:"window_s"` // 0 = the server tells when it ends
	// Paced: the server says nothing of its limits; Limit is what this peer has found out by asking at even gaps, and
	// Used what is on its way.
	Paced    bool       `json:"paced,omitempty"`
	ResetsAt *time.Time `json:"resets_at,omitempty"`
	Calls    int64      `json:"calls"`          // of the credential at the site, ever
	Refused  int64      `json:"refused"`        // of those, by the server for its limits
	Held     string     `json:"held,omitempty"` // why nothing is asked now, and until when
}

// Stream is a stream of a service, as this peer reads it. Counts are since the start.
type Stream struct {
	Address        string     `json:"address"`
	ConnectedSince *time.Time `json:"connected_since,omitempty"` // nil = it is not
	Accounts       int        `json:"accounts"`                  // that it is asked to tell of
	Connects       int64      `json:"connects"`                  // tried
	Events         int64      `json:"events"`
	Bad            int64      `json:"bad"`  // of what it sent, that was no event; of connections that have ended
	Lost           int64      `json:"lost"` // events that no visit of their account could take in time
	LastEvent      *time.Time `json:"last_event,omitempty"`
	Why            string     `json:"why,omitempty"` // it is not connected
}

// PeerInfo is one member: GET /api/v1/peers.
type PeerInfo struct {
	partition.Member
	State  string  `json:"state"` // alive, gone (kept for orphan-after)
	Slices int     `json:"slices"`
	Self   bool    `json:"self,omitempty"`
	Credit string  `json:"credit,omitempty"` // what the asked peer holds against it: told to wait, slowed, cut off
	Status *Status `json:"status,omitempty"` // nil when it did not answer
}

// Owner says who crawls a Key.
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
	Key      partition.Key `json:"key"`
	Owner    string        `json:"owner"`
	Known    bool          `json:"known"`
	Slice    string        `json:"slice,omitempty"` // that it is in
	State    string        `json:"state,omitempty"` // pending, done, gone, refused, placed
	DueAt    *time.Time    `json:"due_at,omitempty"`
	DueWhy   string        `json:"due_why,omitempty"` // why it is looked at again then: the policy's reason
	Why      string        `json:"why,omitempty"`
	Depth    int           `json:"depth"`
	Attempts int           `json:"attempts"`
	// Placement is where its host or account was placed, and the evidence; geo mode.
	Placement json.RawMessage `json:"placement,omitempty"`
	Record    *store.Record   `json:"record,omitempty"`
	Site      *SiteState      `json:"site,omitempty"` // nil: never asked there
	Held      *AccountSummary `json:"held,omitempty"` // of an account, a list or a timeline
	// Overrides are what persons said of an account, in order.
	Overrides []store.Override `json:"overrides,omitempty"`
}

// AccountSummary is what is kept of an account, a list or a timeline beside its record.
type AccountSummary struct {
	Posts   int            `json:"posts"`          // tombstones included
	Deleted int            `json:"deleted"`        // tombstones
	More    bool           `json:"more,omitempty"` // there are more than were counted
	Latest  []store.Record `json:"latest"`         // the newest posts, without tombstones and the services' own objects
	Lists   []ListSummary  `json:"lists"`
	Gaps    []store.Gap    `json:"gaps"` // the newest
}

// ListSummary is what is kept of a list of accounts.
type ListSummary struct {
	List     partition.Key `json:"list"`
	Now      int           `json:"now"`  // in it, as far as is known
	Ever     int           `json:"ever"` // met in it at some time
	More     bool          `json:"more,omitempty"`
	Walks    int           `json:"walks"`
	Complete *store.Walk   `json:"complete,omitempty"` // the last whole reading
	Last     *store.Walk   `json:"last,omitempty"`
}

// Mistakes is GET /api/v1/overrides: how the judge of a community stands against
// what persons said of the same accounts.
type Mistakes struct {
	Words     int       `json:"words"`     // accounts of which a person's word holds
	Judged    int       `json:"judged"`    // of those, whom a judge has seen, too
	Agreed    int       `json:"agreed"`    // and says the same
	Undecided int       `json:"undecided"` // the judge could not tell
	Mistakes  []Mistake `json:"mistakes"`  // the judge says the contrary
	// Kinds is for each kind of evidence by how much, in nats, it spoke for the mistakes: what to look at first.
	Kinds   map[string]float64 `json:"kinds"`
	Missing []Missing          `json:"missing"`
}

// Mistake is an account of which the judge says the contrary of a person.
type Mistake struct {
	Override store.Override   `json:"override"`
	Judged   store.Judged     `json:"judged"`
	Evidence []store.Evidence `json:"evidence"`
}

// GapQuery is GET /api/v1/gaps.
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
	Cursor  string      `json:"cursor,omitempty"` // there is more
}

// SiteState is how the crawl of one site stands, as its owner knows it.
type SiteState struct {
	Site   partition.Site `json:"site"`
	Domain string         `json:"domain"` // registrable, of the site
	// of how many sites together it has the pace, 0 = no limit
	DomainSites int        `json:"domain_sites"`
	Fetched     int64      `json:"fetched"`                // pages, ever
	NextAllowed *time.Time `json:"next_allowed,omitempty"` // no request before
	Delay       float64    `json:"delay_seconds"`          // the gap that it asks for, 0 = ours
	BackOff     float64    `json:"back_off_seconds"`       // after 429 or 503
	Stopped     string     `json:"stopped,omitempty"`      // why nothing of it is fetched
	// its Keys, and links on its pages, that were stopped, by reason
	Stops map[string]int64 `json:"stops"`
}

// SeedAnswer is the fate of one seed.
type SeedAnswer struct {
	Key    string `json:"key"`
	Answer string `json:"answer"` // admitted, known, refused, queued
	Reason string `json:"reason,omitempty"`
	Owner  string `json:"owner,omitempty"`
}

// Query is GET /api/v1/query.
type Query struct {
	Q      string
	Kind   string
	Lang   string
	Site   string
	Since  time.Time
	Until  time.Time
	Facets        // what the judges found
	Limit  int    // default 10, at most 1000
	Cursor string // of the last answer
	Unfold bool   // copies of a hit are hits themselves
	// Timeout is how long other peers are waited for, at most 25 s; 0 is what the peer asked has set.
	Timeout time.Duration
}

// Hit is one result.
type Hit struct {
	Key       partition.Key `json:"key"`
	Post      string        `json:"post,omitempty"` // of a post of Key, its URI
	Kind      string        `json:"kind"`
	Title     string        `json:"title"`
	Snippet   string        `json:"snippet"`
	Score     float64       `json:"score"`
	Place     string        `json:"place,omitempty"`
	Lang      string        `json:"lang,omitempty"`
	Time      *time.Time    `json:"time,omitempty"`
	Peer      string        `json:"peer"`
	FetchedAt time.Time     `json:"fetched_at"`
	Period    string        `json:"period,omitempty"`  // the time that it speaks of, as in Facets.Scope
	Verdict   string        `json:"verdict,omitempty"` // of an account
	// Copies are hits below this one with the same text, or nearly.
	Copies []Copy `json:"copies,omitempty"`

	// Print is what tells copies, for who folds them; no part of the answer.
	Print []byte `json:"-"`
}

// Copy is a hit that says what another says; see crawler/focus/copies.
type Copy struct {
	Key       partition.Key `json:"key"`
	Post      string        `json:"post,omitempty"`
	Title     string        `json:"title"`
	Score     float64       `json:"score"`
	Peer      string        `json:"peer"`
	FetchedAt time.Time     `json:"fetched_at"`
	Reason    string        `json:"reason"`   // exact, simhash, edit
	Distance  int           `json:"distance"` // in bits or words, by the reason
}

// CopyGroup is GET /api/v1/copies: the texts of the whole swarm that say what one says.
type CopyGroup struct {
	Key  partition.Key `json:"key"`
	Post string        `json:"post,omitempty"`
	// the page that it declares to be a copy of, whose group this is
	Canonical partition.Key `json:"canonical,omitempty"`
	Why       string        `json:"why,omitempty"` // why it is not compared with others
	// name of the group, the same whoever is asked for whichever member
	Group string `json:"group,omitempty"`
	// Members are all of it, the representative first: the text that was published
	// first; of those that do not say when, the one with the shorter address. Empty
	// when there is no other like it.
	Members  []GroupMember `json:"members"`
	More     bool          `json:"more,omitempty"` // a limit was met: there may be others
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
	Reason    string        `json:"reason"`   // representative, exact, official, simhash, edit
	Distance  int           `json:"distance"` // to the representative, in bits or words, by the reason
}

// Missing is a part of the swarm that did not answer (I8).
type Missing struct {
	Peer   string `json:"peer"`
	Reason string `json:"reason"`
	Slices int    `json:"slices"`
}

// Coverage says how much of the swarm an answer speaks for.
type Coverage struct {
	SlicesAnswered int       `json:"slices_answered"`
	SlicesTotal    int       `json:"slices_total"`
	Stale          bool      `json:"stale,omitempty"` // what was fetched a moment ago may not be found yet
	Missing        []Missing `json:"missing"`
}

// Answer is a query's answer.
type Answer struct {
	Hits     []Hit    `json:"hits"`
	Total    uint64   `json:"total_estimate"`
	Coverage Coverage `json:"coverage"`
	TookMS   float64  `json:"took_ms"`
	Cursor   string   `json:"cursor,omitempty"`
	Notes    []string `json:"notes,omitempty"` // what of the query was not understood as it may have been meant
}

// Export is GET /api/v1/export.
type Export struct {
	Kind, Lang, Site string
	Since, Until     time.Time
	Facets                  // what the judges found
	Cursor           string // of the last record received: resume after it
	Local            bool   // this peer's records only
	Captures         bool   // records come with what is kept of the visits to them, bodies included
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
