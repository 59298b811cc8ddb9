package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest/blueskytest"
	"github.com/echo-node/echo-node/crawler/crawltest/mastodontest"
)

// peopleCmd serves simulated people to follow until interrupted.
type peopleCmd struct {
	Mastodon  string        `help:"Where the Mastodon server listens." default:"127.77.255.1:7791" placeholder:"ADDR"`
	Bluesky   string        `help:"Where Bluesky's AppView and directory listen." default:"127.77.255.2:7792" placeholder:"ADDR"`
	PDS       string        `help:"Where its accounts' records are." default:"127.77.255.3:7793" placeholder:"ADDR"`
	People    int           `help:"Of each of the two." default:"20"`
	Rate      float64       `help:"Posts a day of the least active; the mean is about four times that." default:"0.3"`
	Past      time.Duration `help:"How long they have been there." default:"720h"`
	Seed      uint64        `help:"Of everything generated." default:"1"`
	TokensOut string        `help:"Write a file for echo-node run --token-file here; without it the Mastodon server answers everybody." placeholder:"FILE"`
	SeedsOut  string        `help:"Write the accounts here, one a line." placeholder:"FILE"`
}

// peopleToken is the token that the Mastodon server accepts. It gives access to nothing else.
const peopleToken = "a-token-of-a-world"

// Help returns the example for --help.
func (peopleCmd) Help() string {
	return `A simulated Mastodon server and a simulated Bluesky, with people who post, edit, delete and follow by the clock of this machine, and the rate
limits of the real ones. Example:

  echo-bench people --tokens-out tokens.yaml --seeds-out people.txt
  echo-node run --data a --allow-net 127.77.0.0/16 --token-file tokens.yaml --seeds people.txt --lists \
    --bluesky-view http://127.77.255.2:7792 --bluesky-directory http://127.77.255.2:7792`
}

// Run serves until ctx is done.
func (c *peopleCmd) Run(ctx context.Context, o output) (err error) {
	if c.People < 1 || c.People > 10_000 || c.Past < 0 {
		return fmt.Errorf("people: --people %d, --past %s: %w: give 1 to 10000 people, and a time that has passed",
			c.People, c.Past, errUsage)
	}
	mo := mastodontest.Options{Seed: c.Seed, People: c.People, Remote: -1, Start: time.Now().Add(-c.Past),
		Clock: time.Now, Rate: c.Rate, Limits: mastodontest.MastodonLimits(), StreamPoll: time.Second}
	if c.TokensOut != "" {
		mo.Tokens, mo.Lies = map[string]string{peopleToken: ""}, mastodontest.Lies{ClosedAPI: true}
	}
	m, stop, err := mastodontest.Serve(c.Mastodon, mo)
	if err != nil {
		return fmt.Errorf("people: %w", err)
	}
	defer func() { err = errors.Join(err, stop()) }()
	b, view, end, err := blueskytest.Serve(c.Bluesky, c.PDS, blueskytest.Options{Seed: c.Seed, People: c.People,
		Start: mo.Start, Clock: time.Now, Rate: c.Rate, Limits: blueskytest.PDSLimits()})
	if err != nil {
		return fmt.Errorf("people: %w", err)
	}
	defer func() { err = errors.Join(err, end()) }()
	var seeds []string
	for _, acct := range m.Users() {
		seeds = append(seeds, "mastodon:"+acct)
	}
	for _, did := range b.IDs() {
		seeds = append(seeds, "bluesky:"+b.Handle(did))
	}
	if c.SeedsOut != "" {
		err = replace(c.SeedsOut, strings.Join(seeds, "\n")+"\n", 0o644)
	}
	if c.TokensOut != "" && err == nil {
		err = replace(c.TokensOut, fmt.Sprintf("mastodon:\n  - server: %s\n    name: ana\n    token: %s\n", m.Domain(),
			peopleToken), 0o600)
	}
	if err != nil {
		return fmt.Errorf("people: %w", err)
	}
	fmt.Fprintf(o.talk, "people: %d at the Mastodon server %s, such as %s; as many at Bluesky, %s, such as %s\n",
		c.People, m.Domain(), seeds[0], view, seeds[c.People])
	<-ctx.Done()
	return nil
}
