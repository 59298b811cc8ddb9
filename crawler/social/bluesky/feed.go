package bluesky

import (
	"context"
	"slices"
	"strings"

	client "github.com/echo-node/echo-node/crawler/bluesky"
	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/crawler/social/account"
)

// feed has what the account.Feeds of this service share.
type feed struct {
	*client.Timeline
	v    *API
	mark *service.Mark
}

// Kept implements account.Feed.
func (f *feed) Kept() *service.Mark { return f.mark }

// Empty implements account.Feed. The service says of each post what became of it.
func (f *feed) Empty() bool { return false }

// page reads the next page. id returns the id of a post in the Mark.
func (f *feed) page(ctx context.Context, id func(client.Post) string) (out []account.Post, err error) {
	b, err := f.Next(ctx)
	for _, p := range b.Posts {
		out = append(out, f.v.postOf(p, id(p)))
	}
	for i, p := range b.Again {
		as := f.v.postOf(p, id(p))
		as.Same = !slices.Contains(b.Changed, i)
		out = append(out, as)
	}
	return out, err
}

// records is the feed of one collection of a repository.
type records struct {
	feed
	pds        *client.Client
	collection string
}

// Page implements account.Feed.
func (f *records) Page(ctx context.Context) ([]account.Post, error) {
	return f.page(ctx, func(p client.Post) string { return client.KeyOf(p.ID) })
}

// One implements account.Feed.
func (f *records) One(ctx context.Context, id string) ([]account.Post, error) {
	return f.v.recordAt(ctx, f.pds, f.URI(id))
}

// URI implements account.Feed.
func (f *records) URI(id string) string {
	return client.URI{DID: f.v.did(), Collection: f.collection, Key: id}.String()
}

// search is the feed of a search at the AppView.
type search struct{ feed }

// searched returns the feed for the text of a search Key. #word is a hashtag.
func searched(query string) client.Feed {
	if tag, ok := strings.CutPrefix(query, "#"); ok && !strings.ContainsAny(tag, " #") {
		return client.Tagged(tag)
	}
	return client.Search(query)
}

// Page implements account.Feed.
func (f *search) Page(ctx context.Context) ([]account.Post, error) {
	return f.page(ctx, func(p client.Post) string { return p.ID })
}

// One implements account.Feed.
func (f *search) One(ctx context.Context, uri string) ([]account.Post, error) {
	return f.v.found(ctx, uri)
}

// URI implements account.Feed.
func (f *search) URI(id string) string { return id }
