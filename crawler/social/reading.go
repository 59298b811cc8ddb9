package social

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/crawler/social/account"
	"github.com/echo-node/echo-node/crawler/social/fold"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// mostAbsent is how many posts that are missing from their feed are asked for in one visit.
const mostAbsent = 5

// reading reads the feeds of a Key into the batch of a fetch.
type reading struct {
	b       *fold.Batch
	api     account.API
	key     partition.Key
	profile time.Duration // the time after which a profile is fetched again
}

// posts reads the feeds of the Key. back is how many posts are read of a feed that was never read
// before; 0 means all.
func (r *reading) posts(ctx context.Context, back int) error {
	feeds, err := r.api.Feeds(ctx, back)
	var no *account.Inactive
	if errors.As(err, &no) {
		r.b.Gap(store.GapSkipped, no.Why)
		// the next visit asks for the profile, which may say why
		r.b.State.Profiled = r.b.State.Profiled.Add(-r.profile)
		return nil
	}
	if err != nil {
		return err
	}
	for _, f := range feeds {
		if err := r.read(ctx, f); err != nil || r.b.Wish != "" {
			return err
		}
	}
	return nil
}

// read reads one feed to its end, or as far as the calls allow.
func (r *reading) read(ctx context.Context, f account.Feed) (err error) {
	for !f.Done() && err == nil && r.b.Wish == "" {
		var posts []account.Post
		posts, err = f.Page(ctx)
		r.b.Take(posts...)
	}
	if r.b.Wish != "" && err == nil {
		return nil
	}
	*f.Kept() = f.Mark()
	defer r.b.Prune()
	l := f.Listing()
	// some servers refuse the second page of a search
	if err != nil && !(f.Done() && l.Pages > 0 && l.Why == service.Closed) {
		return err
	}
	if r.b.State.Outside != "" { // only posts to judge by were read
		return nil
	}
	switch l.Why {
	case "":
	case service.FarEnough, service.MaxPages, service.MaxItems, service.ShowsNoMore, service.Closed:
		r.b.Gap(store.GapCut, fmt.Sprintf("%s: %d posts read", l.Why, l.Seen))
	case service.NothingNew: // the server has one page only: older posts cannot be fetched
		of := "how many there are is not said"
		if r.b.State.Claimed > 0 {
			of = fmt.Sprintf("of %d", r.b.State.Claimed)
		}
		r.b.Gap(store.GapIncomplete, fmt.Sprintf("%s: %d posts read, %s", l.Why, l.Seen, of))
	default:
		r.b.Gap(store.GapIncomplete, string(l.Why))
	}
	r.b.Emptied(f)
	return r.absent(ctx, f)
}

// absent asks for posts that should be in the feed again and are not. If the API says that a post
// does not exist, that is believed. The answer may also come from a web server in between, or from
// a server whose API does not say it (snac). It is then believed in two cases only: a post of the
// feed is found by the same path, or the account has shown no post for long (Batch.Deserted).
func (r *reading) absent(ctx context.Context, f account.Feed) error {
	ids := f.Absent()
	witnessed := false
	for _, id := range ids[:min(len(ids), mostAbsent)] {
		err := r.one(ctx, f, id)
		gone, api := account.NotThere(err)
		if gone && !api && !witnessed && !r.b.Deserted() {
			if witnessed, err = r.witness(ctx, f, ids); err != nil || !witnessed {
				return err
			}
		}
		switch {
		case gone:
			if uri := f.URI(id); uri != "" && !renamed(f, id, uri) {
				r.b.Posts = append(r.b.Posts, r.b.Tombstone(uri, id))
			}
		case err != nil:
			return err
		case !renamed(f, id, f.URI(id)) && !r.b.Settled(id):
			continue
		}
		f.Kept().Recent = slices.DeleteFunc(slices.Clone(f.Kept().Recent),
			func(s service.Seen) bool { return s.ID == id })
	}
	return nil
}

// witness reports whether the newest post that is in the feed is found when it is asked for by its
// id.
func (r *reading) witness(ctx context.Context, f account.Feed, missing []string) (bool, error) {
	for _, s := range f.Kept().Recent {
		if !slices.Contains(missing, s.ID) {
			err := r.one(ctx, f, s.ID)
			if gone, _ := account.NotThere(err); gone {
				return false, nil
			}
			return err == nil, err
		}
	}
	return false, nil
}

// renamed reports whether a missing post is in the feed under another id. At snac a post gets a new
// id when it is touched.
func renamed(f account.Feed, id, uri string) bool {
	return slices.ContainsFunc(f.Kept().Recent, func(s service.Seen) bool { return s.ID != id && f.URI(s.ID) == uri })
}

// one asks for one post.
func (r *reading) one(ctx context.Context, f account.Feed, id string) error {
	posts, err := f.One(ctx, id)
	r.b.Take(posts...)
	return err
}
