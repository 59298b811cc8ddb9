package social

import (
	"context"
	"slices"
	"time"

	"github.com/echo-node/echo-node/crawler/service"
)

const (
	mostAbsent = 5         // posts that are missing from their place, asked for in one visit
	doubtFor   = time.Hour // a post that is missing and yet found is asked for again: some servers take their time over a deletion
)

// absent asks for posts that should have come again and did not. That one is not there is believed of
// the API; of a web server that may stand in between, or of a server whose API has no words for it (snac),
// only where a post that did come is there by the same path.
func (v *visit) absent(ctx context.Context, f feed) error {
	ids := f.Absent()
	witnessed := false
	for _, id := range ids[:min(len(ids), mostAbsent)] {
		err := f.post(ctx, id)
		gone, api := notThere(err)
		if gone && !api && !witnessed {
			if witnessed, err = v.witness(ctx, f, ids); err != nil || !witnessed {
				return err
			}
		}
		switch {
		case gone:
			if uri := f.uri(id); uri != "" && !v.renamed(f, id, uri) {
				v.res.Posts = append(v.res.Posts, v.tombstone(uri, id))
			}
		case err != nil:
			return err
		case !v.renamed(f, id, f.uri(id)) && !v.settled(id):
			continue
		}
		f.mark.Recent = slices.DeleteFunc(slices.Clone(f.mark.Recent), func(s service.Seen) bool { return s.ID == id })
	}
	return nil
}

// witness says whether the newest post that did not miss is found when it is asked for by its id.
func (v *visit) witness(ctx context.Context, f feed, missing []string) (bool, error) {
	for _, s := range f.mark.Recent {
		if !slices.Contains(missing, s.ID) {
			err := f.post(ctx, s.ID)
			if gone, _ := notThere(err); gone {
				return false, nil
			}
			return err == nil, err
		}
	}
	return false, nil
}

// settled says whether a post that is missing was found for so long that it will be.
func (v *visit) settled(id string) bool {
	since, ok := v.st.Doubt[id]
	if !ok {
		if v.st.Doubt == nil {
			v.st.Doubt = map[string]time.Time{}
		}
		v.st.Doubt[id], since = v.now, v.now
	}
	return v.now.Sub(since) >= doubtFor
}

// renamed says whether a post that is missing came by another id, as one that was touched does at snac.
func (v *visit) renamed(f feed, id, uri string) bool {
	return slices.ContainsFunc(f.mark.Recent, func(s service.Seen) bool { return s.ID != id && f.uri(s.ID) == uri })
}
