package pace

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/strictjson"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
)

// The quiet hours of a site are the four hours of the day in which the followed accounts there post
// least. Accounts that have not posted for long are visited in them.
const (
	quietFrom  = 3 // hour UTC, until enough posts are known
	quietFor   = 4 * time.Hour
	quietFirst = 200                 // number of posts from which the learned curve is used
	quietMost  = 100_000             // at more posts than this, all counts are halved
	quietOld   = 60 * 24 * time.Hour // older posts say nothing of today's habits
)

// hoursRow is the prefix of the rows that hold a curve.
const hoursRow = "api.hours/"

// curve has how many posts of a site were made in each hour of the day, UTC. It belongs to this
// peer and is kept in its store, as JSON. What a crash loses is learned again.
type curve struct {
	V     int         `json:"v"`
	Posts [24]float64 `json:"posts"`
	kept  float64     // total when it was last written
}

const curveVersion = 1

func (c *curve) total() (n float64) {
	for _, p := range c.Posts {
		n += p
	}
	return n
}

// quiet returns the hour at which the quiet hours begin.
func (c *curve) quiet() int {
	if c.total() < quietFirst {
		return quietFrom
	}
	best, least := 0, -1.0
	for from := range 24 {
		n := 0.0
		for h := range int(quietFor / time.Hour) {
			n += c.Posts[(from+h)%24]
		}
		if least < 0 || n < least {
			best, least = from, n
		}
	}
	return best
}

// Curves are the curves of all sites. Safe for concurrent use. Their errors are those of the store.
type Curves struct {
	store *db.Store
	mu    sync.Mutex
	by    map[partition.Site]*curve
}

// NewCurves returns the Curves kept in a store.
func NewCurves(s *db.Store) *Curves { return &Curves{store: s, by: map[partition.Site]*curve{}} }

// Len returns how many curves are in memory.
func (c *Curves) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.by)
}

// curveRow returns the name of the row of a curve. It has a hash, as a site may be too long.
func curveRow(s partition.Site) string {
	sum := sha256.Sum256([]byte(s))
	return hoursRow + hex.EncodeToString(sum[:16])
}

// of returns the curve of a site. The caller holds mu.
func (c *Curves) of(s partition.Site) (*curve, error) {
	if got := c.by[s]; got != nil {
		return got, nil
	}
	if len(c.by) >= maxSites {
		for site, of := range c.by {
			if err := c.keep(site, of); err != nil {
				return nil, err
			}
		}
		clear(c.by)
	}
	got := &curve{V: curveVersion}
	b, err := c.store.Meta(curveRow(s))
	if err != nil && !errors.Is(err, store.ErrNotExist) {
		return nil, err
	}
	if err == nil && (strictjson.Unmarshal(b, got) != nil || got.V != curveVersion) { // learn again
		got = &curve{V: curveVersion}
	}
	got.kept = got.total()
	c.by[s] = got
	return got, nil
}

// keep writes a curve if it has changed.
func (c *Curves) keep(s partition.Site, of *curve) error {
	if of.total() == of.kept {
		return nil
	}
	b, err := json.Marshal(of)
	if err != nil {
		return fmt.Errorf("social: hours: %w", err)
	}
	if err := c.store.SetMeta(curveRow(s), b); err != nil {
		return err
	}
	of.kept = of.total()
	return nil
}

// Saw adds the times at which posts of a site were made. Posts that are too old, or in the future,
// do not count.
func (c *Curves) Saw(s partition.Site, now time.Time, at []time.Time) error {
	at = slices.DeleteFunc(slices.Clone(at), func(t time.Time) bool { return now.Sub(t) >= quietOld || t.After(now) })
	if len(at) == 0 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	of, err := c.of(s)
	if err != nil {
		return err
	}
	for _, t := range at {
		of.Posts[t.UTC().Hour()]++
	}
	if of.total() > quietMost {
		for h := range of.Posts {
			of.Posts[h] /= 2
		}
		return c.keep(s, of)
	}
	if of.total() > 2*of.kept {
		return c.keep(s, of)
	}
	return nil
}

// Quiet returns the hour, UTC, at which the quiet hours of a site begin.
func (c *Curves) Quiet(s partition.Site) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of, err := c.of(s)
	if err != nil {
		return 0, err
	}
	return of.quiet(), nil
}

// Close writes all curves that have changed.
func (c *Curves) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for s, of := range c.by {
		if err := c.keep(s, of); err != nil {
			return err
		}
	}
	return nil
}
