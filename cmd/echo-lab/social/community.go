package social

import (
	"fmt"
	"math/rand/v2"
	"sort"
	"time"

	"github.com/echo-node/echo-node/cmd/echo-lab/contest"
	"github.com/echo-node/echo-node/partition"
)

// The days of a world. Warm days are played but not counted.
const (
	past    = 30 // before the first call: an account whose last post is older is silent
	warm    = 3
	counted = 30
	checks  = 8
	perDay  = 86400
)

// mostCounted is how many posts of an account the table counts. A timeline gave 200 posts,
// minus those that were only shared: 21,400 posts of 127 accounts.
const mostCounted = 168

// The batch and the page of the API.
const (
	batch = 100
	page  = 200
)

// PaperRow is a row of TwitterEcho's table.
type PaperRow struct {
	Gap               string
	Users             int
	Collected, Posted int
	Coverage, Mean    float64 // %
}

// Paper returns the table. In the row of 6 days it prints the same number of posts and
// collected posts, which contradicts its share. Here Posted follows from the share.
func Paper() [contest.EchoRows]PaperRow {
	return [contest.EchoRows]PaperRow{
		{"1h", 127, 16073, 21400, 75.1, 74.0}, {"3h", 217, 26592, 36463, 72.9, 72.8},
		{"6h", 216, 23153, 32098, 72.1, 71.7},
		{"12h", 277, 19512, 25287, 77.2, 76.3}, {"1d", 378, 13078, 16946, 77.2, 76.8},
		{"3d", 725, 9942, 12197, 81.5, 83.2},
		{"6d", 358, 2046, 2542, 80.5, 84.3}, {"12d", 228, 841, 999, 84.2, 87.3}, {"24d", 82, 248, 297, 83.5, 88.7},
		{"1y", 57, 161, 189, 85.2, 90.4}}
}

// Community is the truth.
type Community struct {
	names []string
	index map[string]int32
	keys  []partition.Key
	posts [][]int64 // Unix seconds, ascending
	rows  []int
	start int64 // of the first call
	end   int64
}

// Draw returns the community of n accounts for a seed.
func Draw(n int, seed uint64) (*Community, error) {
	w, err := contest.Populate("table", n, past+warm+counted, rand.New(rand.NewPCG(seed, 71)))
	if err != nil {
		return nil, fmt.Errorf("social: %w", err)
	}
	c := &Community{start: w.From + past*perDay, end: w.To, index: make(map[string]int32, n)}
	for i, t := range w.Things {
		key, err := partition.ParseKey(fmt.Sprintf("twitter:%d", 1000+i))
		if err != nil {
			return nil, fmt.Errorf("social: %w", err)
		}
		c.names, c.keys = append(c.names, string(key)), append(c.keys, key)
		c.index[string(key)] = int32(i)
		c.posts, c.rows = append(c.posts, t.Changes), append(c.rows, t.Drawn)
	}
	return c, nil
}

// share returns the accounts of one of the peers.
func (c *Community) share(peer, peers int) []int32 {
	var out []int32
	for i, k := range c.keys {
		if h := k.Hash128(); (int(h[0])<<8|int(h[1]))%peers == peer {
			out = append(out, int32(i))
		}
	}
	return out
}

// until returns how many posts of account i exist at the time at.
func (c *Community) until(i int32, at int64) int {
	return sort.Search(len(c.posts[i]), func(k int) bool { return c.posts[i][k] > at })
}

// known returns the time of an account's last post, according to its profile before the first
// call. It is more than a month ago if the account has no earlier post in the world.
func (c *Community) known(i int32) time.Time {
	if n := c.until(i, c.start); n > 0 {
		return clock(c.posts[i][n-1])
	}
	return clock(c.start - (past+15)*perDay)
}

// moments returns the times at which fetched posts are counted.
func (c *Community) moments() []int64 {
	var out []int64
	for k := range checks {
		out = append(out, c.end-1-int64(k)*perDay/checks)
	}
	return out
}

// judged returns the range of posts of account i that count at the moment at.
func (c *Community) judged(i int32, at int64) (from, to int) {
	to = c.until(i, at)
	return max(c.until(i, at-counted*perDay), to-mostCounted), to
}

func clock(unix int64) time.Time { return time.Unix(unix, 0).UTC() }
