package account

import (
	"slices"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Writer is the author of a text, as an answer shows the author beside the text. The zero value
// means nobody, or an author that the answer does not describe.
type Writer struct {
	Key     partition.Key // "" = unknown
	Wishes  []string      // hashtags and labels as Opted reads them
	NoIndex bool          // the author opts out of search engines
}

// Wish returns the wish of w not to be collected, "" if there is none.
func (w Writer) Wish() string { return Opted(w.Wishes) }

// Said returns the Writer with those hashtags in the profile.
func Said(key partition.Key, tags []string) Writer {
	return Writer{Key: key, Wishes: tags, NoIndex: slices.Contains(tags, "#noindex") ||
		slices.Contains(tags, "#nosearch")}
}

// Lead is an account that a post leads to.
type Lead struct {
	Key partition.Key // "" = no account
	Rel string        // the relation to the post, such as mention
}

// Post is a post as its service shows it, with the authors of the texts in it.
type Post struct {
	// Record is what the service shows of the post. The code that stores it (fold.Batch.Take) sets
	// Key, Kind, FetchedAt, Source and Status, and URL if the post has none.
	Record store.Record
	ID     string // its id in the Mark of its feed

	By, Boosted, Quoted Writer
	// the post is not public: a credential may see more than the public does
	Closed bool

	// the id (in the Mark) of the post it replies to; "" = no reply, or the record has the URI
	ReplyTo string
	Leads   []Lead // accounts other than its author
	// Same says that the post has not changed since it was read. Only its author's wishes are
	// checked again.
	Same bool
}

// Lead adds an account that p leads to.
func (p *Post) Lead(k partition.Key, rel string) { p.Leads = append(p.Leads, Lead{k, rel}) }
