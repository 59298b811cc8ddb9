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

// Server is what one server was found to be and to do, asked with or without a
// credential. It is a value; Encode and DecodeServer keep it as bytes.
type Server struct {
	V        int    `json:"v"`
	Base     string `json:"base"`
	WithAuth bool   `json:"auth"` // probed with a credential
	// Domain stands behind the @ of its accounts; for Options.Domain.
	Domain   string `json:"domain,omitempty"`
	Software string `json:"software,omitempty"` // mastodon, gotosocial, snac, pleroma, ...; lower case
	Version  string `json:"version,omitempty"`
	API      int64  `json:"api,omitempty"` // api_versions.mastodon, 0 = not said; batches are of 2 and later

	Languages []string `json:"languages,omitempty"`
	People    int64    `json:"people"` // -1 = not said, as Posts
	Posts     int64    `json:"posts"`
	Streaming string   `json:"streaming,omitempty"` // its address

	Batch    service.Obeys  `json:"batch,omitempty"`    // accounts?id[]=
	Timeline Paging         `json:"timeline,omitzero"`  // of an account's posts
	Accounts service.Access `json:"accounts,omitempty"` // profiles
	Statuses service.Access `json:"statuses,omitempty"` // posts of an account
	Local    service.Access `json:"local,omitempty"`    // the public timeline of its own people
	Remote   service.Access `json:"remote,omitempty"`   // and of all it knows of
	Tags     service.Access `json:"tags,omitempty"`
	Search   service.Access `json:"search,omitempty"`
	Edges    service.Access `json:"edges,omitempty"` // follower and following lists
	// Lists is what is wrong with its follower and following lists: EmptyButClaims,
	// FewerThanClaim, MoreThanClaim, NotTheirs; "" = nothing found.
	Lists service.Word `json:"lists,omitempty"`
	// OfFollowers and OfFollowing are what it does, asked with a credential, with whose list is asked for: Ignored = it
	// gives that of the credential's owner. "" = not known. See Client.Whose.
	OfFollowers service.Obeys `json:"of_followers,omitempty"`
	OfFollowing service.Obeys `json:"of_following,omitempty"`

	Unsure  []service.Doubt `json:"unsure,omitempty"` // what could not be found out
	Calls   int             `json:"calls"`
	Probed  time.Time       `json:"probed"`
	Expires time.Time       `json:"expires"`
}

const (
	serverVersion = 1
	maxServer     = 16 << 10 // bytes of a Server
	serverFresh   = 7 * 24 * time.Hour
	serverUnsure  = 6 * time.Hour // when something could not be found out that may be later
	maxLanguages  = 32
)

// Fresh says whether s may still be relied on at now.
func (s Server) Fresh(now time.Time) bool {
	return s.V == serverVersion && now.Before(s.Expires) && !now.Before(s.Probed.Add(-time.Hour))
}

// Encode is s as bytes.
func (s Server) Encode() []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("mastodon: server: %v", err)) // plain fields; times are of a clock or of DecodeServer
	}
	return b
}

// DecodeServer reads what Encode gave.
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
	if len(s.Languages) == 0 { // as Encode leaves it
		s.Languages = nil
	}
	if len(s.Unsure) == 0 {
		s.Unsure = nil
	}
	return s, nil
}
