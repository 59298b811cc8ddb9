package stream

import (
	"sync"

	"github.com/echo-node/echo-node/crawler/social/account"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// postID is the id of a post at its server.
type postID struct {
	of partition.Site
	id string
}

// postOf is a post and its author.
type postOf struct {
	by  partition.Key
	uri string
}

// Posted finds posts by their id at their server. It holds at most most posts, the ones that were
// read or reported last. Safe for concurrent use.
type Posted struct {
	most     int // 0 = it holds none
	mu       sync.Mutex
	now, old map[postID]postOf
}

// put adds a post. It keeps two maps of at most most/2 posts each, and drops the older map when the
// newer one is full.
func (p *Posted) put(id postID, at postOf) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now == nil || len(p.now) >= p.most/2 {
		p.now, p.old = map[postID]postOf{}, p.now
	}
	p.now[id] = at
}

func (p *Posted) find(id postID) (postOf, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at, ok := p.now[id]; ok {
		return at, true
	}
	at, ok := p.old[id]
	return at, ok
}

// Read adds the posts of an account that were read in this visit, and the newest ones from before.
func (p *Posted) Read(k partition.Key, st *account.State, posts []store.Record) {
	if p.most == 0 || k.Service() != "mastodon" {
		return
	}
	for _, r := range posts {
		if r.ID != "" && !r.Deleted {
			p.put(postID{k.Site(), r.ID}, postOf{k, r.Post})
		}
	}
	for id, uri := range st.Names {
		p.put(postID{k.Site(), id}, postOf{k, uri})
	}
}
