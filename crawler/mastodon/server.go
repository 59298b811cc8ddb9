package mastodon

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/partition/strictjson"
)

// Paging is what a server does with the parameters of a timeline.
type Paging struct {
	Limit service.Obeys `json:"limit,omitempty"`
	Min   service.Obeys `json:"min,omitempty"`
	Since service.Obeys `json:"since,omitempty"`
	Max   service.Obeys `json:"max,omitempty"`
}

// Server is what a probe found out about one server, with or without a credential. It is a value;
// Encode and DecodeServer convert it to and from bytes.
type Server struct {
	V        int    `json:"v"`
	Base     string `json:"base"`
	WithAuth bool   `json:"auth"` // probed with a credential
	// Domain is the host after the @ of its accounts, for Options.Domain.
	Domain string `json:"domain,omitempty"`
	// mastodon, gotosocial, snac, pleroma, ...; lower case
	Software string `json:"software,omitempty"`
	Version  string `json:"version,omitempty"`
	// api_versions.mastodon, 0 = unknown; batches need 2 or later
	API int64 `json:"api,omitempty"`

	Languages []string `json:"languages,omitempty"`
	People    int64    `json:"people"` // -1 = unknown, also for Posts
	Posts     int64    `json:"posts"`
	Streaming string   `json:"streaming,omitempty"` // its address

	Batch    service.Obeys  `json:"batch,omitempty"`    // accounts?id[]=
	Timeline Paging         `json:"timeline,omitzero"`  // of an account's posts
	Accounts service.Access `json:"accounts,omitempty"` // profiles
	Statuses service.Access `json:"statuses,omitempty"` // posts of an account
	Local    service.Access `json:"local,omitempty"`    // the public timeline of its own accounts
	// the public timeline of all accounts that it knows
	Remote service.Access `json:"remote,omitempty"`
	Tags   service.Access `json:"tags,omitempty"`
	Search service.Access `json:"search,omitempty"`
	Edges  service.Access `json:"edges,omitempty"` // follower and following lists
	// Lists is the fault of its follower and following lists: EmptyButClaims, FewerThanClaim,
	// MoreThanClaim, NotTheirs; "" = none found.
	Lists service.Word `json:"lists,omitempty"`
	// OfFollowers and OfFollowing say how the server treats the account in a request with a
	// credential. Ignored = it returns the list of the credential's owner. "" = not known. See
	// Client.Whose.
	OfFollowers service.Obeys `json:"of_followers,omitempty"`
	OfFollowing service.Obeys `json:"of_following,omitempty"`

	Unsure  []service.Doubt `json:"unsure,omitempty"` // open questions
	Calls   int             `json:"calls"`
	Probed  time.Time       `json:"probed"`
	Expires time.Time       `json:"expires"`
}

const (
	serverVersion = 1
	maxServer     = 16 << 10 // bytes of a Server
	serverFresh   = 7 * 24 * time.Hour
	serverUnsure  = 6 * time.Hour // if an open question may be settled later
	maxLanguages  = 32
)

// Fresh reports whether s is still valid at now.
func (s Server) Fresh(now time.Time) bool {
	return s.V == serverVersion && now.Before(s.Expires) && !now.Before(s.Probed.Add(-time.Hour))
}

// Encode returns s as bytes.
func (s Server) Encode() []byte {
	b, err := json.Marshal(s)
	if err != nil {
		// cannot happen: plain fields; times come from a clock or DecodeServer
		panic(fmt.Sprintf("mastodon: server: %v", err))
	}
	return b
}

// DecodeServer decodes the output of Encode.
func DecodeServer(b []byte) (Server, error) {
	var s Server
	if len(b) > maxServer {
		return Server{}, fmt.Errorf("mastodon: server: %d bytes, at most %d", len(b), maxServer)
	}
	if err := strictjson.Unmarshal(b, &s); err != nil {
		return Server{}, fmt.Errorf("mastodon: server: %w", err)
	}
	if s.V != serverVersion {
		return Server{}, fmt.Errorf("mastodon: server: version %d: %w", s.V, service.ErrVersion)
	}
	if len(s.Languages) == 0 { // as before Encode
		s.Languages = nil
	}
	if len(s.Unsure) == 0 {
		s.Unsure = nil
	}
	return s, nil
}
