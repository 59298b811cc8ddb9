package account

import (
	"fmt"
	"time"

	"github.com/echo-node/echo-node/crawler/judge/community"
	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/strictjson"
)

// State is a Key's Checkpoint, as JSON.
type State struct {
	V       int       `json:"v"`
	ID      string    `json:"id,omitempty"`      // of the account at its server
	Visited time.Time `json:"visited,omitzero"`  // when all that there was had been read
	Good    time.Time `json:"good,omitzero"`     // when the server answered last
	Outage  Outage    `json:"outage,omitzero"`   // that has not been followed by a whole reading
	Lost    int       `json:"lost,omitempty"`    // times in a row that the account was not found
	Outside string    `json:"outside,omitempty"` // not followed, and why not: out or undecided
	Barred  string    `json:"barred,omitempty"`  // by which tokens the last visit was refused (Source.sum)

	Profiled time.Time    `json:"profiled,omitzero"` // when the profile was read, for its record
	Looked   time.Time    `json:"looked,omitzero"`   // when it was looked up last, be it for what it claims only
	Claimed  int64        `json:"claimed,omitempty"` // posts, by the profile
	LastPost time.Time    `json:"last_post,omitzero"`
	Told     Told         `json:"told,omitzero"`
	NoIndex  bool         `json:"noindex,omitempty"`
	Mark     service.Mark `json:"mark,omitzero"`
	// URI of each post of Mark.Recent, by id: how a deleted one is named
	Names map[string]string `json:"names,omitempty"`
	Langs map[string]int    `json:"langs,omitempty"`

	// Doubt are posts that are missing from their place and yet found, by id, since when.
	Doubt map[string]time.Time `json:"doubt,omitempty"`
	// Empty is since when an account has shown no post, of which posts had been read.
	Empty  time.Time `json:"empty,omitzero"`
	Judged Judged    `json:"judged,omitzero"`

	Shunned []Shunned `json:"shunned,omitempty"`
	Round   Round     `json:"round,omitzero"`

	// Of who is followed.
	Poll  time.Time `json:"poll,omitzero"`   // when its server is asked again; zero = it is not followed
	Trust int       `json:"trust,omitempty"` // readings in a row of which the stream had told all, trustedAfter at most
	Plain time.Time `json:"plain,omitzero"`  // Poll without a stream, where that is sooner

	List *ListState `json:"list,omitempty"`

	// Of Bluesky, where an account's reposts are a feed of their own.
	Boosts service.Mark `json:"boosts,omitzero"`
	Acct   string       `json:"acct,omitempty"` // its handle
	Name   string       `json:"name,omitempty"`
	PDS    string       `json:"pds,omitempty"` // where its records are
	Rev    string       `json:"rev,omitempty"` // of its repository, when all of it had been read
}

// Marks are where the Marks of st are.
func (st *State) Marks() []*service.Mark { return []*service.Mark{&st.Mark, &st.Boosts} }

const StateVersion = 1

// DecodeState reads a Checkpoint; nil is the state of a Key never visited.
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

// Outage is the time in which a server could not be reached, as the ledger has it.
type Outage struct {
	From   time.Time `json:"from,omitzero"`
	To     time.Time `json:"to,omitzero"`
	Reason string    `json:"reason,omitempty"`
}

// Told is what a look-up said of an account before its posts were read last. As long as it says the same,
// nothing was posted or deleted.
type Told struct {
	At    time.Time `json:"at,omitzero"` // when they were read; zero = never whole
	Posts int64     `json:"posts,omitempty"`
	Last  time.Time `json:"last,omitzero"`
	// Lies is for how many visits to come that is not believed, as it said the same and there were new posts.
	Lies int `json:"lies,omitempty"`
}

// Judged is what is kept of the last verdict, with a Key's state.
type Judged struct {
	Known uint64          `json:"known,omitempty"` // a sum of what it was given on
	Ask   []community.Ask `json:"ask,omitempty"`   // what would tell more, the best first
	Had   []string        `json:"had,omitempty"`   // of that, what was asked for
	Next  string          `json:"next,omitempty"`  // what is asked for by the visit that is due
	Wait  time.Duration   `json:"wait,omitempty"`
	Said  time.Time       `json:"said,omitzero"` // a person's last word that was heeded
}

// Shunned is somebody of whom nothing is to be kept under a Key.
type Shunned struct {
	Key  partition.Key `json:"key"`
	Wish string        `json:"wish"`
	From string        `json:"from,omitempty"` // the posts up to this one, in the order of their URIs, were looked at
	Done bool          `json:"done,omitempty"` // all were
}

// ListState is where the reading of a list stands.
type ListState struct {
	Walk  time.Time          `json:"walk"` // when it began
	At    service.Checkpoint `json:"at,omitempty"`
	Sum   uint64             `json:"sum"` // of the accounts met, whatever their order
	Last  uint64             `json:"last"`
	Every time.Duration      `json:"every"`
}

// Times of who needs no frequent visit.
const (
	Silent    = 30 * 24 * time.Hour // without a post: looked at in the quiet hours only
	Outsiders = 30 * 24 * time.Hour // whoever does not belong, or cannot be decided on, is judged again
	Ended     = 90 * 24 * time.Hour // suspended or moved: some come back
)
