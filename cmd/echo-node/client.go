package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/echo-node/echo-node/dht"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// client has the flags of every command that uses a running peer.
type client struct {
	API      string `name:"api" default:"127.0.0.1:7700" placeholder:"HOST:PORT" help:"The running peer to ask."`
	APIToken string `name:"api-token-file" placeholder:"FILE" help:"File with the peer's API token. Not needed for a peer that you run on this machine."`
}

func (c *client) dial() (*api.Client, error) {
	token := ""
	if c.APIToken == "" {
		token = findToken(c.API)
	} else {
		b, err := os.ReadFile(c.APIToken)
		if err != nil {
			return nil, usage("--api-token-file: %w", err)
		}
		token = strings.TrimSpace(string(b))
	}
	cl, err := api.NewClient(c.API, token)
	if err != nil {
		return nil, &usageError{err}
	}
	return cl, nil
}

func parseKey(text string) (partition.Key, error) {
	k, err := partition.ParseKey(text)
	if err != nil {
		return "", &usageError{err}
	}
	return k, nil
}

// filter has the flags that select records for a query or an export.
type filter struct {
	Kind  string `help:"Only this kind of record: page, profile, post or edges. An export also knows gap and media."`
	Lang  string `help:"Only this language, for example pt."`
	Site  string `help:"Only this site."`
	Since string `placeholder:"TIME" help:"Published or fetched since (RFC 3339, or 2026-01-31)."`
	Until string `placeholder:"TIME" help:"Published or fetched before."`

	Place   string  `help:"Only from this place or country, for example Porto or PT."`
	Near    string  `help:"Only from near this place or LATITUDE,LONGITUDE."`
	Radius  float64 `placeholder:"KM" help:"With --near: the distance (default 50)."`
	Scope   string  `placeholder:"1939..1945" help:"Only texts about this time, whenever they were published: years, months, days or FROM..TO, separated by commas."`
	Verdict string  `enum:",in,out,undecided" default:"" placeholder:"in" help:"Only accounts with this verdict: in, out or undecided."`
}

func (f *filter) facets() api.Facets {
	return api.Facets{Place: f.Place, Near: f.Near, Radius: f.Radius, Scope: f.Scope, Verdict: f.Verdict}
}

// times returns Since and Until; zero where not given.
func (f *filter) times() (since, until time.Time, err error) {
	if since, err = parseTime("--since", f.Since); err == nil {
		until, err = parseTime("--until", f.Until)
	}
	return since, until, err
}

func tail(id string) string { return id[max(0, len(id)-6):] }

func parseTime(flag, s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	return time.Time{}, usage("%s: %q is not a time: give 2026-01-31 or 2026-01-31T12:00:00Z", flag, s)
}

type statusCmd struct {
	client
	Watch bool          `help:"Keep printing one line: share done, rate, and time left."`
	Every time.Duration `default:"1s" help:"With --watch: time between two lines."`
	Site  string        `placeholder:"HOST" help:"Show the state of this site's crawl, and why it stopped, if it did. The answer comes from the site's owner."`
}

// Help returns the text below the usage.
func (statusCmd) Help() string {
	return "Examples:\n  echo-node status --watch\n  echo-node status --site www.example.org"
}

// Run prints a peer's status; with --watch until interrupted.
func (c *statusCmd) Run(ctx context.Context, p *program, g *globals) error {
	cl, err := c.dial()
	if err != nil {
		return err
	}
	if c.Site != "" {
		return c.site(ctx, cl, p, g)
	}
	for {
		s, err := cl.Status(ctx)
		if err != nil {
			return ignoreDone(ctx, err)
		}
		if err := p.print(g, s, func(w io.Writer) { printStatus(w, s, c.Watch) }); err != nil || !c.Watch {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(c.Every):
		}
	}
}

// siteStatus is what status --site prints as JSON.
type siteStatus struct {
	Owner string `json:"owner"`
	*api.SiteState
}

// site prints the state of one site, as its owner reports it.
func (c *statusCmd) site(ctx context.Context, cl *api.Client, p *program, g *globals) error {
	at := c.Site
	if !strings.Contains(at, "://") {
		at = "http://" + at + "/"
	}
	k, err := partition.ParseKey(at)
	if err != nil {
		return fmt.Errorf("--site %s: %w", c.Site, err)
	}
	s, err := cl.Show(ctx, k)
	if err != nil {
		return err
	}
	if s.Site == nil {
		return fmt.Errorf("%s was never asked", k.Site())
	}
	return p.print(g, siteStatus{s.Owner, s.Site}, func(w io.Writer) { printSite(w, s.Owner, *s.Site) })
}

func printSite(w io.Writer, owner string, s api.SiteState) {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	row := func(name string, v any) { say(t, "%s\t%s\n", name, fmt.Sprint(v)) }
	row("site", s.Site)
	row("owner", owner)
	if s.DomainSites > 0 {
		row("domain", fmt.Sprintf("%s, with the pace of %d sites", s.Domain, s.DomainSites))
	}
	row("fetched", s.Fetched)
	if s.Delay > 0 {
		row("delay", fmt.Sprintf("%g s", s.Delay))
	}
	if s.BackOff > 0 {
		row("back-off", fmt.Sprintf("%g s", s.BackOff))
	}
	if s.NextAllowed != nil {
		row("not before", s.NextAllowed.Format(time.RFC3339))
	}
	if s.Stopped != "" {
		row("skipped", s.Stopped)
	}
	for _, why := range slices.Sorted(maps.Keys(s.Stops)) {
		row("stopped", fmt.Sprintf("%d: %s", s.Stops[why], api.StopText(why)))
	}
	_ = t.Flush() // see printStatus
}

func printStatus(w io.Writer, s api.Status, short bool) {
	if short {
		words := []string{fmt.Sprintf("%s  fetched %d  pending %d  fetching %d  outbox %d  slices %d  peers %d",
			time.Now().Format(time.TimeOnly),
			s.Fetched, s.Pending, s.Fetching, s.Outbox, s.Slices, s.Peers), s.Progress.Text(),
			strings.Join(s.Limits, "; ")}
		say(w, "%s\n", strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), "  "))
		return
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	row := func(name string, v any) { say(t, "%s\t%s\n", name, fmt.Sprint(v)) }
	row("peer", s.ID)
	row("swarm", fmt.Sprintf("%s (%d peers)", s.Swarm, s.Peers))
	if s.Membership != "" {
		row("membership", s.Membership)
	}
	row("slices", fmt.Sprintf("%d owned of %d, %d on their way", s.Slices, s.SlicesTotal, s.SlicesAwaited))
	row("keys", fmt.Sprintf("%d known, %d pending, %d due, %d being fetched", s.Keys, s.Pending, s.Due, s.Fetching))
	if s.Quarantined > 0 {
		row("quarantine", fmt.Sprintf("%d keys left alone, because processes died while they judged them: echo-node quarantine", s.Quarantined))
	}
	if text := s.Progress.Text(); text != "" {
		row("progress", text)
	}
	row("fetched", fmt.Sprintf("%d (%d requests, %d failed)", s.Fetched, s.Requests, s.Failed))
	row("records", s.Records)
	if v := s.Verdicts; len(v) > 0 {
		row("verdicts", fmt.Sprintf("%d in, %d out, %d undecided", v["in"], v["out"], v["undecided"]))
	}
	if top := s.TopLanguages(api.ShownLanguages); len(top) > 0 {
		for i, l := range top {
			top[i] = fmt.Sprintf("%s %d", l, s.Languages[l])
		}
		row("languages", strings.Join(top, ", "))
	}
	row("links", fmt.Sprintf("%d handed out, %d received, %d in the outbox", s.LinksOut, s.LinksIn, s.Outbox))
	row("index", fmt.Sprintf("%d changes behind", s.IndexLag))
	row("media", mediaText(s))
	row("disk", fmt.Sprintf("%.1f MiB", float64(s.DiskBytes)/(1<<20)))
	if s.Trash.Slices > 0 {
		row("trash", fmt.Sprintf("%d dropped copies, %.1f MiB, %d about to be given back", s.Trash.Slices,
			float64(s.Trash.Bytes)/(1<<20), s.Trash.Wanted))
	}
	for _, c := range s.Clock {
		row("clock", clockText(c))
	}
	row("memory", fmt.Sprintf("%.1f MiB of %.0f MiB held for pages, %.1f MiB at most", float64(s.Memory.Held)/(1<<20),
		float64(s.Memory.Limit)/(1<<20), float64(s.Memory.Most)/(1<<20)))
	row("limits", strings.Join(append([]string{}, s.Limits...), "; "))
	statusOfSites(row, s)
	_ = t.Flush() // the next Encode or Fprintf would fail in the same way
}

// statusOfSites adds rows about servers, addresses, and repeated visits.
func statusOfSites(row func(name string, v any), s api.Status) {
	for _, b := range s.Budgets {
		row("budget", budgetText(b))
	}
	for _, r := range s.Rejected {
		row("token", rejectedText(r))
	}
	for _, r := range s.Rounds {
		row("old posts", roundText(r))
	}
	for _, x := range s.Streams {
		row("stream", streamText(x))
	}
	if s.AddressesWaiting > 0 {
		row("addresses", fmt.Sprintf("%d waited for", s.AddressesWaiting))
	}
	for _, why := range s.AddressesBlocked {
		row("blocked", why)
	}
	for _, why := range slices.Sorted(maps.Keys(s.Stops)) {
		row("stopped", fmt.Sprintf("%d: %s", s.Stops[why], api.StopText(why)))
	}
	if len(s.Revisits) > 0 || s.Dead > 0 {
		row("dead", fmt.Sprintf("%.2f %% of the records", 100*s.Dead))
	}
	for _, found := range slices.Sorted(maps.Keys(s.Revisits)) {
		row("seen again", fmt.Sprintf("%d: %s", s.Revisits[found], found))
	}
	if h := s.Hints; h["received"] > 0 {
		row("hints", fmt.Sprintf("%d received, %d followed, %d right, %d wrong", h["received"], h["followed"],
			h["right"], h["wrong"]))
	}
}

type peersCmd struct{ client }

// Run lists the members.
func (c *peersCmd) Run(ctx context.Context, p *program, g *globals) error {
	cl, err := c.dial()
	if err != nil {
		return err
	}
	ps, err := cl.Peers(ctx)
	if err != nil {
		return err
	}
	return p.print(g, ps, func(w io.Writer) {
		t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
		fmt.Fprintln(t, "PEER\tSTATE\tSLICES\tCAPACITY\tFETCHED\tRECORDS\tPENDING")
		for _, x := range ps {
			self := ""
			if x.Self {
				self = " (this one)"
			}
			f, r, pd := "?", "?", "?"
			if x.Status != nil {
				f, r, pd = fmt.Sprint(x.Status.Fetched), fmt.Sprint(x.Status.Records), fmt.Sprint(x.Status.Pending)
			}
			say(t, "%s%s\t%s\t%d\t%d\t%s\t%s\t%s\n", x.ID, self, x.State, x.Slices, x.Capacity, f, r, pd)
		}
		_ = t.Flush()
	})
}

// keyed has the flags of a command about one key.
type keyed struct {
	client
	Key string `arg:"" help:"A key or a URL."`
}

func (c *keyed) dialKey() (*api.Client, partition.Key, error) {
	k, err := parseKey(c.Key)
	if err != nil {
		return nil, "", err
	}
	cl, err := c.dial()
	return cl, k, err
}

type ownerCmd struct{ keyed }

// Run prints which peers crawl a key.
func (c *ownerCmd) Run(ctx context.Context, p *program, g *globals) error {
	cl, k, err := c.dialKey()
	if err != nil {
		return err
	}
	o, err := cl.Owner(ctx, k)
	if err != nil {
		return err
	}
	return p.print(g, o, func(w io.Writer) {
		say(w, "key     %s\nsite    %s\nslice   %s\nkeepers %s\naddrs   %s\n", o.Key, o.Site, o.Slice,
			strings.Join(o.Replicas, " "), strings.Join(o.Addrs, " "))
	})
}

type showCmd struct{ keyed }

// Run prints what the owner of a key knows of it. The exit code is 1 when the key is unknown.
func (c *showCmd) Run(ctx context.Context, p *program, g *globals) error {
	cl, k, err := c.dialKey()
	if err != nil {
		return err
	}
	s, err := cl.Show(ctx, k)
	if err != nil {
		return err
	}
	out := shown{Shown: s}
	if s.Record != nil && s.Record.Copies != "" {
		if a, err := cl.Copies(ctx, k, ""); err != nil {
			out.NoGroup = err.Error()
		} else {
			out.Group = &a
		}
	}
	if err := p.print(g, out, func(w io.Writer) { printShown(w, out) }); err != nil {
		return err
	}
	if !s.Known {
		return fmt.Errorf("the swarm does not know %s", k)
	}
	return nil
}

func printShown(w io.Writer, s shown) {
	why := s.Why
	if s.DueAt != nil && s.DueWhy == why { // the source's own plan: printed once
		why = ""
	}
	say(w, "key    %s\nowner  %s\nstate  %s %s\n", s.Key, s.Owner, s.State, why)
	if s.DueAt != nil {
		say(w, "due    %s %s\n", s.DueAt.Format(time.RFC3339), s.DueWhy)
	}
	if r := s.Record; r != nil {
		say(w, "fetched %s by …%s, status %d, %s\ntitle  %s\nlang   %s\n", r.FetchedAt.Format(time.RFC3339),
			tail(r.Peer), r.Status, r.Digest,
			oneLine(r.Title), r.Lang)
		printMedia(w, r)
		printJudged(w, r)
		printGroup(w, s)
		say(w, "links  %d\n\n%s\n", len(r.Links), oneLine(r.Text))
	}
	for _, o := range s.Overrides {
		say(w, "said   %s by %s to …%s at %s: %s\n", cmp.Or(o.Verdict, "as the judge says"), oneLine(o.By),
			oneLine(tail(o.Peer)), o.At.Format(time.RFC3339), oneLine(o.Why))
	}
	if s.Held != nil {
		printSummary(w, *s.Held)
	}
}

// printJudged prints what the judges found in a record.
func printJudged(w io.Writer, r *store.Record) {
	if p := r.Place; p != nil {
		say(w, "place  %s, %s (%.2f)\n", oneLine(p.Name), oneLine(p.Country), p.Confidence)
	}
	for _, i := range r.Period {
		say(w, "period %s to %s\n", oneLine(i.Start), oneLine(i.End))
	}
	if r.Copies != "" {
		say(w, "copies %s\n", oneLine(r.Copies))
	}
	if v := r.Verdict; v != nil {
		say(w, "verdict %s (%.2f) of %s\n", oneLine(v.Verdict), v.Score, oneLine(v.By))
		for _, e := range v.Evidence {
			say(w, "  %s\n", oneLine(e.String()))
		}
	}
}

type idCmd struct {
	Data string `default:"echo-data" placeholder:"DIR" help:"Data directory."`
}

// Run prints the identity of a data directory. It works while a peer has the directory open.
func (c *idCmd) Run(p *program, g *globals) error {
	key, err := dht.LoadIdentity(filepath.Join(c.Data, "identity.key"), false)
	if err != nil {
		return fmt.Errorf("%w; a data directory is made by the first echo-node run --data %s", err, c.Data)
	}
	id := dht.PeerID(key)
	return p.print(g, map[string]string{"id": id}, func(w io.Writer) { fmt.Fprintln(w, id) })
}

var errShortExport = errors.New("part of the swarm is missing from the export")
