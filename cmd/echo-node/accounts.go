package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/echo-node/echo-node/crawler/judge/community"
	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/crawler/social"
	"github.com/echo-node/echo-node/crawler/social/follow"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/geo"
)

// accountFlags say how accounts of services are followed.
type accountFlags struct {
	TokenFile string   `name:"token-file" placeholder:"FILE" help:"File with access tokens for Mastodon-compatible servers and for X. Bluesky needs none. Only you may be able to read the file (mode 0600)." group:"Accounts:"`
	Follow    string   `default:"" enum:",seeds,community,all" placeholder:"seeds|community|all" help:"Which accounts to follow: only seeds, the community's members, or all (default: seeds; with --community: community)." group:"Accounts:"`
	Community string   `placeholder:"NAME|FILE" help:"The community that accounts are judged by: pt or br, which are part of the program, or a file (echo-node focus who --show prints one). Its seeds are followed." group:"Accounts:"`
	Lists     bool     `help:"Also read the lists of followers and followings of each followed account." group:"Accounts:"`
	Media     bool     `help:"Also fetch the pictures, sound and video of followed accounts. A file is deleted with the post or profile that names it." group:"Accounts:"`
	MediaMax  size     `name:"media-max" default:"2MiB" placeholder:"SIZE" help:"With --media: skip files above this size; at most 2MiB." group:"Accounts:"`
	Back      int      `default:"0" placeholder:"N" help:"On the first visit of an account, read its newest N posts; 0 = all." group:"Accounts:"`
	Country   []string `name:"community-country" sep:"," placeholder:"PT" help:"Instead of --community: accounts whose profile names this country (ISO code) belong. Repeatable." group:"Accounts:"`
	Lang      []string `name:"community-lang" sep:"," placeholder:"pt" help:"Instead of --community: accounts whose posts declare this language belong. Repeatable." group:"Accounts:"`
	Include   string   `placeholder:"FILE" help:"File of accounts that always belong, one key a line." group:"Accounts:"`
	Exclude   string   `placeholder:"FILE" help:"File of accounts that are never followed, one key a line." group:"Accounts:"`
	View      string   `name:"bluesky-view" placeholder:"URL" help:"The AppView that shows Bluesky's profiles, lists and searches (default https://public.api.bsky.app)." group:"Accounts:"`
	Directory string   `name:"bluesky-directory" placeholder:"URL" help:"The directory of Bluesky's DIDs (default https://plc.directory)." group:"Accounts:"`
	X         string   `name:"x-api" placeholder:"URL" help:"The API of X (default https://api.x.com). It is used only with a token." group:"Accounts:"`
	Jetstream string   `placeholder:"wss://HOST/subscribe" help:"A Jetstream server. It reports new, edited and deleted Bluesky posts within seconds and saves API calls. This peer subscribes to the followed accounts of its slices." group:"Accounts:"`
	Streams   int      `name:"mastodon-streams" default:"16" placeholder:"N" help:"Read the public streams of at most N Mastodon-compatible servers, those with the most accounts followed here. New posts arrive within seconds and need fewer API calls. A stream above 4 MiB an hour plus 1 MiB for each such account is closed for a day. 0 = none." group:"Accounts:"`
	Fanout    int      `default:"1" placeholder:"N" help:"A new swarm divides the accounts of one server into N parts, so that up to N peers share them." group:"Swarm:"`
}

// options translates the flags; seeds are the community's.
func (f *accountFlags) options() (o social.Options, seeds []partition.Key, err error) {
	o = social.Options{Lists: f.Lists, Back: f.Back, View: f.View, Jetstream: f.Jetstream, Streams: f.Streams,
		Directory: f.Directory, X: f.X, Rules: follow.Rules{Follow: follow.Scope(f.Follow), Langs: f.Lang}}
	var errs []error
	if f.Community != "" {
		if seeds, err = f.judge(&o.Rules); err != nil {
			errs = append(errs, err)
		}
	}
	if o.Tokens, err = readTokens(f.TokenFile); err != nil {
		errs = append(errs, usage("--token-file: %w", err))
	}
	if o.Rules.Include, err = readAccounts("include", f.Include); err != nil {
		errs = append(errs, err)
	}
	if o.Rules.Exclude, err = readAccounts("exclude", f.Exclude); err != nil {
		errs = append(errs, err)
	}
	for _, c := range f.Country {
		if len(c) != 2 {
			errs = append(errs, usage("--community-country %s: give the two letters of ISO 3166-1, such as PT", c))
		}
		o.Rules.Countries = append(o.Rules.Countries, strings.ToUpper(c))
	}
	if len(f.Country) > 0 && len(errs) == 0 {
		g, err := geo.Open()
		if err != nil {
			return o, nil, err
		}
		o.Rules.Country = func(text string) string {
			if r := g.Resolve(text, geo.Hints{}); r.Place != nil {
				return r.Place.Country
			}
			return ""
		}
	}
	return o, seeds, errors.Join(errs...)
}

// media returns the value for node.Options.Media.
func (f *accountFlags) media() int64 {
	switch {
	case !f.Media:
		return 0
	case f.MediaMax == 0:
		return -1 // node refuses it and names the option
	}
	return int64(f.MediaMax)
}

// judge sets up the judging for --community. The returned seeds are the accounts in its file;
// entries that are no account of a service are left out.
func (f *accountFlags) judge(r *follow.Rules) (seeds []partition.Key, err error) {
	if len(f.Country)+len(f.Lang) > 0 {
		return nil, usage("--community %s: not together with --community-country and --community-lang", f.Community)
	}
	text, err := communityText(f.Community)
	if err != nil {
		return nil, err
	}
	c, err := community.Parse(text)
	if err != nil {
		return nil, usage("--community %s: %w", f.Community, err)
	}
	j, err := community.Open(c)
	if err != nil {
		return nil, err
	}
	if r.Judge = j.Judge; r.Follow == "" {
		r.Follow = follow.Community
	}
	sum := sha256.Sum256(text)
	r.Community = fmt.Sprintf("%s@%d-%x", c.Name, community.Version, sum[:4])
	for _, s := range c.Seeds {
		if k, err := partition.ParseKey(s); err == nil && k.Kind() == partition.KindAccount {
			seeds = append(seeds, k)
		}
	}
	return seeds, nil
}

// readAccounts reads accounts, one Key per line.
func readAccounts(flag, file string) (map[partition.Key]bool, error) {
	if file == "" {
		return nil, nil
	}
	keys, bad, err := readKeys(file)
	if err == nil {
		err = joinLines(bad) // a file with left-out entries would not be safe here
	}
	if err != nil {
		return nil, usage("--%s %s: %w", flag, file, err)
	}
	out := make(map[partition.Key]bool, len(keys))
	for _, k := range keys {
		if k.Kind() != partition.KindAccount {
			return nil, usage("--%s %s: %s is no account; of Bluesky give its DID, of X its number", flag, file, k)
		}
		out[k] = true
	}
	return out, nil
}

// tokenFile is the form of the file for --token-file.
type tokenFile struct {
	Mastodon []tokenLine `yaml:"mastodon"`
	Twitter  []tokenLine `yaml:"twitter"`
}

// tokenLine is one credential.
type tokenLine struct {
	Server string  `yaml:"server"` // of Mastodon: host[:port]
	Name   string  `yaml:"name"`   // for status and logs; default: token-1, token-2, …
	Token  string  `yaml:"token"`
	USD    float64 `yaml:"usd"` // of X: dollars that it may spend in a UTC day
}

// tokenForm shows the form of a file of tokens.
const tokenForm = `
  mastodon:
    - server: HOST
      name: WORD
      token: TOKEN
  twitter:
    - name: WORD
      token: TOKEN
      usd: DOLLARS`

// maxDollars is the most that a token may spend in a day.
const maxDollars = 100_000

// maxTokenFile is the largest size of a file of credentials that is read.
const maxTokenFile = 1 << 20

// readTokens reads credentials. Its errors contain nothing of the file except the position of
// the fault.
func readTokens(file string) ([]social.Token, error) {
	if file == "" {
		return nil, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // read only
	if info, err := f.Stat(); err != nil {
		return nil, err
	} else if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s can be read by others (mode %04o): chmod 600 it", file, info.Mode().Perm())
	}
	b, err := io.ReadAll(io.LimitReader(f, maxTokenFile+1))
	if err != nil {
		return nil, err
	}
	var t tokenFile
	dec := yaml.NewDecoder(bytes.NewReader(b))
	dec.KnownFields(true)
	if err := dec.Decode(&t); len(b) > maxTokenFile || err != nil && !errors.Is(err, io.EOF) {
		// the YAML error quotes the file
		return nil, fmt.Errorf("%s is not of the form%s", file, tokenForm)
	}
	var out []social.Token
	for i, m := range slices.Concat(t.Mastodon, t.Twitter) {
		if m.Name == "" {
			m.Name = fmt.Sprintf("token-%d", i+1)
		}
		if strings.Contains(m.Name, m.Token) || strings.Contains(m.Server, m.Token) {
			return nil, fmt.Errorf("%s: entry %d: give the token in the field token, not in the name or the server", file,
				i+1)
		}
		c, err := service.NewCredential(m.Name, m.Token)
		if err != nil {
			return nil, fmt.Errorf("%s: entry %d: %w", file, i+1, err)
		}
		token := social.Token{Server: strings.ToLower(m.Server), Credential: c}
		if !(m.USD >= 0 && m.USD <= maxDollars) {
			return nil, fmt.Errorf("%s: entry %d: usd: 0 to %d", file, i+1, maxDollars)
		}
		token.Daily = int64(m.USD * 1e6)
		if i >= len(t.Mastodon) {
			token.Service = "twitter"
		}
		out = append(out, token)
	}
	return out, nil
}
