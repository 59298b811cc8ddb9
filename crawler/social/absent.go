package social

import (
	"context"
	"slices"
	"time"

	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/partition"
)

const (
	mostAbsent = 5 // posts that are missing from their place, asked for in one visit
	// a post that is missing and yet found is asked for again: some servers take their time over a deletion
	doubtFor = time.Hour
)

// absent asks for posts that should have come again and did not. That one is not there is believed of
// the API; of a web server that may stand in between, or of a server whose API has no words for it (snac),
// only where a post that did come is there by the same path, or where the API has shown no post at all of
// the account for so long.
func (v *visit) absent(ctx context.Context, f feed) error {
	ids := f.Absent()
	witnessed := false
	for _, id := range ids[:min(len(ids), mostAbsent)] {
		err := f.post(ctx, id)
		gone, api := notThere(err)
		if gone && !api && !witnessed && !v.deserted() {
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

// emptied notes whether an account whose posts were read shows none any more, nor claims to have any.
func (v *visit) emptied(f feed) {
	account := v.t.Due.Key.Kind() == partition.KindAccount
	switch {
	case !account || f.empty == nil || !f.empty() || len(f.mark.Recent) == 0 || v.st.Claimed > 0:
		v.st.Empty = time.Time{}
	case v.st.Empty.IsZero():
		v.st.Empty = v.now
	}
}

// deserted says whether that has been so for long enough: it was left or emptied, and a post that is not found is gone.
func (v *visit) deserted() bool {
	return !v.st.Empty.IsZero() && v.now.Sub(v.st.Empty) >= doubtFor
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
