package account

import (
	"slices"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Writer is somebody as an answer shows them beside what they wrote. The zero value is nobody, or somebody of whom the
// answer shows nothing.
type Writer struct {
	Key     partition.Key // "" = not known
	Wishes  []string      // in the words of Opted
	NoIndex bool          // asks not to be in search engines
}

// Wish is the wish of w not to be collected, "" = none.
func (w Writer) Wish() string { return Opted(w.Wishes) }

// Said is a writer with those hashtags in its profile.
func Said(key partition.Key, tags []string) Writer {
	return Writer{Key: key, Wishes: tags, NoIndex: slices.Contains(tags, "#noindex") ||
		slices.Contains(tags, "#nosearch")}
}

// Lead is somebody that a post leads to.
type Lead struct {
	Key partition.Key // "" = nobody
	Rel string        // how
}

// Post is a post as its service shows it, with those whose words are in it.
type Post struct {
	// Record is what is shown of it; Key, Kind, FetchedAt, Source and Status are left to who takes it in, and URL
	// where the post has none of its own.
	Record store.Record
	ID     string // what its feed's Mark calls it

	By, Boosted, Quoted Writer
	Closed              bool // it is not for everybody: a credential may see more than is public

	ReplyTo string // what the Mark calls the post that it answers, "" = it answers none, or that is known by its URI
	Leads   []Lead // but for its author
	// Same says that it is known to be as it was read before: only whether it may still be kept is looked at.
	Same bool
}

// Lead notes somebody that p leads to.
func (p *Post) Lead(k partition.Key, rel string) { p.Leads = append(p.Leads, Lead{k, rel}) }
