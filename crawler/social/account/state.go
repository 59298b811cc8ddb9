package account

import (
	"fmt"
	"time"

	"github.com/echo-node/echo-node/crawler/judge/community"
	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/strictjson"
)

// State is the progress of a Key between two fetches. It is stored as the Key's Checkpoint, in
// JSON.
type State struct {
	V  int    `json:"v"`
	ID string `json:"id,omitempty"` // of the account at its server
	// last time that everything available had been read
	Visited time.Time `json:"visited,omitzero"`
	Good    time.Time `json:"good,omitzero"` // last time that the server answered
	// last outage that no complete reading has followed
	Outage Outage `json:"outage,omitzero"`
	// number of visits in a row that did not find the account
	Lost int `json:"lost,omitempty"`
	// why the account is not followed: out or undecided; "" = it may be followed
	Outside string `json:"outside,omitempty"`
	// sum of the tokens that were refused on the last visit (calls.Tokens.Sum)
	Barred string `json:"barred,omitempty"`

	Profiled time.Time `json:"profiled,omitzero"` // when the profile was read for its record
	// last look-up, also if only its counters were used
	Looked   time.Time    `json:"looked,omitzero"`
	Claimed  int64        `json:"claimed,omitempty"` // number of posts that the profile claims
	LastPost time.Time    `json:"last_post,omitzero"`
	LookedUp LookedUp     `json:"told,omitzero"`
	NoIndex  bool         `json:"noindex,omitempty"`
	Mark     service.Mark `json:"mark,omitzero"`
	// Names has the URI of each post of Mark.Recent, by id. The tombstone of a deleted post needs
	// it.
	Names map[string]string `json:"names,omitempty"`
	Langs map[string]int    `json:"langs,omitempty"`

	// Doubt has the posts that are missing from the feed but are still found alone: the time this
	// was first seen, by id.
	Doubt map[string]time.Time `json:"doubt,omitempty"`
	// Empty is the first time that an account, whose posts had been read before, showed no post.
	Empty  time.Time `json:"empty,omitzero"`
	Judged Judged    `json:"judged,omitzero"`

	Shunned []Shunned `json:"shunned,omitempty"`
	Round   Round     `json:"round,omitzero"`

	// The next three are set for accounts that are followed.
	Poll time.Time `json:"poll,omitzero"` // next time its server is asked; zero = not followed
	// readings in a row that the stream had fully announced, at most trustedAfter
	Trust int `json:"trust,omitempty"`
	// the time Poll would be without a stream, if that is sooner
	Plain time.Time `json:"plain,omitzero"`

	List *ListState `json:"list,omitempty"`

	// The next five are for Bluesky, where an account's reposts are a separate feed.
	Boosts service.Mark `json:"boosts,omitzero"`
	Acct   string       `json:"acct,omitempty"` // its handle
	Name   string       `json:"name,omitempty"`
	PDS    string       `json:"pds,omitempty"` // the server that has its records
	// revision of its repository when all of it had been read
	Rev string `json:"rev,omitempty"`
}

// Marks returns the Marks of st.
func (st *State) Marks() []*service.Mark { return []*service.Mark{&st.Mark, &st.Boosts} }

// StateVersion is the version of the format of a State.
const StateVersion = 1

// DecodeState decodes a Checkpoint. An empty one gives the state of a Key that was never visited.
func DecodeState(b []byte) (State, error) {
	st := State{V: StateVersion}
	if len(b) == 0 {
		return st, nil
	}
	if err := strictjson.Unmarshal(b, &st); err != nil {
		return st, err
	}
	if st.V != StateVersion {
		return st, fmt.Errorf("version %d", st.V)
	}
	for _, m := range st.Marks() {
		var err error
		if *m, err = service.DecodeMark(m.Encode()); err != nil {
			return st, err
		}
	}
	return st, nil
}

// Outage is the time in which a server could not be reached, as in the gap ledger.
type Outage struct {
	From   time.Time `json:"from,omitzero"`
	To     time.Time `json:"to,omitzero"`
	Reason string    `json:"reason,omitempty"`
}

// LookedUp has the values of the look-up before the posts of the account were last read. While
// look-ups return the same values, nothing was posted or deleted.
type LookedUp struct {
	At    time.Time `json:"at,omitzero"` // time of that reading; zero = never complete
	Posts int64     `json:"posts,omitempty"`
	Last  time.Time `json:"last,omitzero"`
	// Lies is for how many more visits the look-up is not trusted. It is set when the look-up
	// returned the same although there were new posts.
	Lies int `json:"lies,omitempty"`
}

// Judged is the part of the last verdict that a Key's state keeps.
type Judged struct {
	Known uint64 `json:"known,omitempty"` // hash of the evidence that was judged
	// evidence that would help to decide, the best first
	Ask  []community.Ask `json:"ask,omitempty"`
	Had  []string        `json:"had,omitempty"`  // entries of Ask that were already fetched
	Next string          `json:"next,omitempty"` // the evidence that the next visit fetches
	Wait time.Duration   `json:"wait,omitempty"`
	Said time.Time       `json:"said,omitzero"` // time of the last human override that was applied
}

// Shunned is an account whose texts must not be stored under a Key.
type Shunned struct {
	Key  partition.Key `json:"key"`
	Wish string        `json:"wish"`
	From string        `json:"from,omitempty"` // the posts up to this URI were checked
	Done bool          `json:"done,omitempty"` // all posts were checked
}

// ListState is the progress of reading a list.
type ListState struct {
	Walk  time.Time          `json:"walk"` // when the reading began
	At    service.Checkpoint `json:"at,omitempty"`
	Sum   uint64             `json:"sum"` // hash of the accounts read, independent of their order
	Last  uint64             `json:"last"`
	Every time.Duration      `json:"every"`
}

// Times for accounts that do not need frequent visits.
const (
	// accounts without a post for this long are visited only in the quiet hours
	Silent = 30 * 24 * time.Hour
	// accounts that are out or undecided are judged again after this time
	Outsiders = 30 * 24 * time.Hour
	// suspended and moved accounts are checked again after this time: some come back
	Ended = 90 * 24 * time.Hour
)
