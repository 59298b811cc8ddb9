package mastodontest

import (
	"fmt"

	"github.com/echo-node/echo-node/crawler/judge/community/communitytest"
)

// Inhabit gives the first people of the world the data of a simulated nation, as far as a Mastodon
// shows it. A Mastodon shows no time zone. It shows a person's language setting only as the
// language of the posts. accts are the names, user@host, in the nation's order.
func (w *World) Inhabit(nation *communitytest.World) (accts []string, err error) {
	if accts, err = w.settle(nation); err != nil {
		return nil, err
	}
	for i, n := range nation.People {
		for _, to := range n.Follows {
			if err := w.Follow(accts[i], accts[to]); err != nil {
				return nil, err
			}
		}
		mentions := n.Mentions
		for _, text := range n.Texts {
			id, err := w.Post(accts[i], text)
			if err != nil {
				return nil, err
			}
			w.Lock()
			p := w.Posts[id]
			p.Lang, p.Tags, p.Links, p.Mentions = n.Profile.Lang, nil, nil, nil
			if len(mentions) > 0 {
				p.Mentions = []*person{w.People[mentions[0]]}
				mentions = mentions[1:]
			}
			w.Unlock()
		}
	}
	return accts, nil
}

// settle sets the profiles.
func (w *World) settle(nation *communitytest.World) (accts []string, err error) {
	w.Lock()
	defer w.Unlock()
	if len(w.People) < len(nation.People) {
		return nil, fmt.Errorf("mastodontest: %d people of a nation in a world of %d", len(nation.People),
			len(w.People))
	}
	for i, n := range nation.People {
		p, of := w.People[i], n.Profile
		p.Name, p.Bio, p.Bot, p.Fields = of.Name, of.Bio, of.Bot, nil
		p.NoIndex, p.Hidden, p.Locked, p.Following, p.Followers = false, false, false, nil, nil
		if of.Location != "" {
			p.Fields = append(p.Fields, [2]string{"Localização", of.Location})
		}
		if of.URL != "" {
			p.Fields = append(p.Fields, [2]string{"Web", of.URL})
		}
		for _, f := range of.Fields {
			p.Fields = append(p.Fields, [2]string{f.Name, f.Value})
		}
		accts = append(accts, w.Full(p))
	}
	return accts, nil
}
