package partition

// Point is a place on the sphere in degrees, WGS 84.
type Point struct {
	Lat float64 `json:"lat"`
	Lon float64 `json:"lon"`
}

// Member is a live peer as the others see it.
type Member struct {
	ID       string   `json:"id"`       // libp2p peer id, text
	Addrs    []string `json:"addrs"`    // multiaddrs, without /p2p/ID
	Location *Point   `json:"location,omitempty"`
	Capacity int      `json:"capacity"` // 1 to 16; anything else is clamped
	LoadStep int      `json:"loadstep"` // 0 to 16: weight is multiplied by 2^(-LoadStep/2)
	Version  string   `json:"version"`  // of the program
}

// View is this peer's own list of live members, sorted by ID, and its digest.
// It is local, never a truth that two peers share. The zero View is empty. A
// View is immutable.
type View struct {
	members []Member
	digest  uint64
}

// NewView sorts and copies ms; a later duplicate of an ID wins.
func NewView(ms []Member) View { return View{} }

// Members are the members in order of ID. Do not modify.
func (v View) Members() []Member { return v.members }

// Find is the member with that id.
func (v View) Find(id string) (Member, bool) { return Member{}, false }

// Digest is equal for equal views.
func (v View) Digest() uint64 { return v.digest }

// Table is the keepers of every slice under a View, by capacity-weighted
// rendezvous hashing. Updates are incremental: a join compares one new score
// per slice, a leave re-ranks only the slices the leaver kept. Not safe for
// concurrent use.
type Table struct{}

// NewTable is a Table of c's slices with no members.
func NewTable(c Charter) *Table { return &Table{} }

// Update moves the Table to v and returns the slices whose keepers changed.
func (t *Table) Update(v View) []Slice { return nil }

// Keepers are the IDs of the members that keep s, ranked; the first is the
// owner. Empty when the View is.
func (t *Table) Keepers(s Slice) []string { return nil }

// Owner is the first keeper of s, "" when there is none.
func (t *Table) Owner(s Slice) string { return "" }

// Owned lists the slices that the member id owns, in order.
func (t *Table) Owned(id string) []Slice { return nil }
