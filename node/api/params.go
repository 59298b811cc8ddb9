package api

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/echo-node/echo-node/partition"
)

// FilterParams are the parameters that query and export share. The type is exported only
// because huma looks into no unexported embedded struct. The fields are text, and the code here
// checks them, because the dashboard's form uses the same code.
type FilterParams struct {
	Kind  string `query:"kind" doc:"page, profile, post, edges or media"`
	Lang  string `query:"lang" doc:"language of the record, BCP 47"`
	Site  string `query:"site" doc:"a site, as web:HOST or mastodon:HOST, or a plain host name"`
	Since string `query:"since" doc:"fetched at or after: RFC 3339 time, or a date (UTC)"`
	Until string `query:"until" doc:"fetched before: RFC 3339 time, or a date (UTC)"`
}

type queryParams struct {
	Q string `query:"q" doc:"words to look for"`
	FilterParams
	FacetParams
	Limit   string `query:"limit" doc:"hits to return, 1 to 1000, 10 when absent"`
	Cursor  string `query:"cursor" doc:"cursor of the last answer: go on after it"`
	Unfold  string `query:"unfold" doc:"true: copies of a hit are hits themselves, not listed under it"`
	Timeout string `query:"timeout" doc:"how long to wait for other peers, for example 500ms or 2s; at most 25s. The answer names peers that were too late as missing"`
}

type exportParams struct {
	FilterParams
	FacetParams
	Format string `query:"format" doc:"jsonl, the default"`
	Cursor string `query:"cursor" doc:"cursor of the last complete line: go on after it"`
	Local  string `query:"local" doc:"true: records of this peer only"`
	// Captures is text like the other parameters.
	Captures string `query:"captures" doc:"true: each record has its captures, the versions and revisits that are kept, with bodies in base64"`
}

type gapParams struct {
	Site   string `query:"site" doc:"a site, as mastodon:HOST or bluesky:, or a plain host name"`
	Since  string `query:"since" doc:"found at or after: RFC 3339 time, or a date (UTC)"`
	Until  string `query:"until" doc:"found before: RFC 3339 time, or a date (UTC)"`
	Limit  string `query:"limit" doc:"gaps to return, 1 to 1000, 100 when absent"`
	Cursor string `query:"cursor" doc:"cursor of the last answer: go on after it"`
	Local  string `query:"local" doc:"true: of this peer's slices only"`
}

func (p gapParams) query() (GapQuery, error) {
	var f faults
	e := FilterParams{Site: p.Site, Since: p.Since, Until: p.Until}.check(&f)
	q := GapQuery{Site: e.Site, Since: e.Since, Until: e.Until, Limit: f.count("limit", p.Limit, 100, maxLimit),
		Cursor: f.text("cursor", p.Cursor, maxCursor), Local: f.flag("local", p.Local)}
	return q, f.err()
}

// count parses a whole number from 1 to most. It returns normal when text is empty.
func (f *faults) count(name, text string, normal, most int) int {
	text = strings.TrimSpace(text)
	if text == "" {
		return normal
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		f.add("query."+name, text, "must be a whole number from 1 to %d", most)
	}
	return n
}

// wait parses a duration from minWait to maxWait. It returns 0 when text is empty.
func (f *faults) wait(name, text string) time.Duration {
	text = strings.TrimSpace(text)
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < minWait || d > maxWait {
		f.add("query."+name, text, "must be a time from %s to %s, as 500ms or 2s", minWait, maxWait)
	}
	return d
}

// faults collects the errors in one request's parameters.
type faults []error

func (f *faults) add(location, value, format string, args ...any) {
	if len(value) > 80 {
		value = strings.ToValidUTF8(value[:80], "") + "…"
	}
	*f = append(*f, &huma.ErrorDetail{Location: location, Value: value, Message: fmt.Sprintf(format, args...)})
}

// err returns nil, or one problem with all faults.
func (f faults) err() error {
	if len(f) == 0 {
		return nil
	}
	return huma.Error422UnprocessableEntity("validation failed", f...)
}

func (f *faults) text(name, value string, most int) string {
	switch {
	case len(value) > most:
		f.add("query."+name, value, "at most %d bytes", most)
	case strings.ContainsFunc(value, func(r rune) bool { return r == 0 || r == '\uFFFD' }):
		f.add("query."+name, value, "must be UTF-8 text")
	}
	return strings.TrimSpace(value)
}

func (f *faults) flag(name, value string) bool {
	if value == "" {
		return false
	}
	v, err := strconv.ParseBool(value)
	if err != nil {
		f.add("query."+name, value, "must be true or false")
	}
	return v
}

func (f *faults) instant(name, value string) time.Time {
	value = strings.TrimSpace(value)
	if value == "" {
		return time.Time{}
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		// In UTC the year may be outside what RFC 3339 can write.
		if t, err := time.Parse(layout, value); err == nil && t.UTC().Year() >= 1 && t.UTC().Year() <= 9999 {
			return t.UTC()
		}
	}
	f.add("query."+name, value, "must be a time as 2026-01-31T12:00:00Z or a date as 2026-01-31")
	return time.Time{}
}

func (p FilterParams) check(f *faults) Export {
	e := Export{
		Kind: f.text("kind", p.Kind, maxFilterText), Lang: f.text("lang", p.Lang, maxFilterText),
		Site:  f.text("site", p.Site, maxFilterText),
		Since: f.instant("since", p.Since), Until: f.instant("until", p.Until),
	}
	if kinds := []string{"", "page", "profile", "post", "edges", "media"}; !slices.Contains(kinds, e.Kind) {
		f.add("query.kind", e.Kind, "must be page, profile, post, edges or media")
	}
	if !isLang(e.Lang) {
		f.add("query.lang", e.Lang, "must be a language tag as pt or pt-BR")
	}
	if !e.Since.IsZero() && !e.Until.IsZero() && !e.Since.Before(e.Until) {
		f.add("query.until", p.Until, "must be after since")
	}
	return e
}

// isLang reports whether s has the form of a BCP 47 tag, or is empty.
func isLang(s string) bool {
	if s == "" {
		return true
	}
	for i, part := range strings.Split(s, "-") {
		if len(part) < 1 || len(part) > 8 || i == 0 && (len(part) < 2 || len(part) > 3) {
			return false
		}
		for _, c := range []byte(part) {
			letter := c|0x20 >= 'a' && c|0x20 <= 'z'
			if !letter && (i == 0 || c < '0' || c > '9') {
				return false
			}
		}
	}
	return true
}

func (p queryParams) query() (Query, error) {
	var f faults
	e := p.FilterParams.check(&f)
	q := Query{
		Facets: p.FacetParams.check(&f), Unfold: f.flag("unfold", p.Unfold),
		Q: f.text("q", p.Q, maxQueryText), Kind: e.Kind, Lang: e.Lang, Site: e.Site, Since: e.Since, Until: e.Until,
		Limit: f.count("limit", p.Limit, defaultLimit, maxLimit), Cursor: f.text("cursor", p.Cursor, maxCursor),
		Timeout: f.wait("timeout", p.Timeout),
	}
	return q, f.err()
}

func (p exportParams) export() (Export, error) {
	var f faults
	gaps := p.Kind == "gap" // only an export has gaps
	if gaps {
		p.Kind = ""
	}
	e := p.FilterParams.check(&f)
	if gaps {
		e.Kind = "gap"
	}
	e.Facets = p.FacetParams.check(&f)
	e.Cursor = f.text("cursor", p.Cursor, maxCursor)
	e.Local, e.Captures = f.flag("local", p.Local), f.flag("captures", p.Captures)
	if err := f.err(); err != nil {
		return Export{}, err
	}
	switch p.Format {
	case "", "jsonl":
		return e, nil
	case "warc", "csv":
		return Export{}, huma.Error400BadRequest("format " + p.Format +
			" is made by the command echo-node export, from jsonl")
	}
	return Export{}, huma.Error400BadRequest("format must be jsonl")
}

// ParseQuery reads the parameters of GET /api/v1/query from v. It ignores unknown parameters;
// the caller handles them. Limit is 10 when absent.
func ParseQuery(v url.Values) (Query, error) {
	return queryParams{
		Q: v.Get("q"), FacetParams: facetParams(v), Limit: v.Get("limit"), Cursor: v.Get("cursor"),
		Unfold: v.Get("unfold"), Timeout: v.Get("timeout"),
		FilterParams: FilterParams{
			Kind: v.Get("kind"), Lang: v.Get("lang"), Site: v.Get("site"), Since: v.Get("since"), Until: v.Get("until"),
		},
	}.query()
}

// Values returns q as the parameters of GET /api/v1/query. ParseQuery reads them back.
func (q Query) Values() url.Values {
	v := filterValues(Export{Kind: q.Kind, Lang: q.Lang, Site: q.Site, Since: q.Since, Until: q.Until, Facets: q.Facets,
		Cursor: q.Cursor})
	put(v, "q", q.Q)
	if q.Unfold {
		v.Set("unfold", "true")
	}
	if q.Limit > 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	if q.Timeout != 0 {
		v.Set("timeout", q.Timeout.String())
	}
	return v
}

// Values returns e as the parameters of GET /api/v1/export.
func (e Export) Values() url.Values {
	v := filterValues(e)
	if e.Local {
		v.Set("local", "true")
	}
	if e.Captures {
		v.Set("captures", "true")
	}
	return v
}

func filterValues(e Export) url.Values {
	v := url.Values{}
	put(v, "kind", e.Kind)
	put(v, "lang", e.Lang)
	put(v, "site", e.Site)
	put(v, "cursor", e.Cursor)
	e.put(v)
	if !e.Since.IsZero() {
		v.Set("since", e.Since.UTC().Format(time.RFC3339Nano))
	}
	if !e.Until.IsZero() {
		v.Set("until", e.Until.UTC().Format(time.RFC3339Nano))
	}
	return v
}

func put(v url.Values, name, value string) {
	if value != "" {
		v.Set(name, value)
	}
}

// keyParam is the only parameter of owner and records.
type keyParam struct {
	Key string `query:"key" required:"true" doc:"a Key, or a plain http or https URL"`
}

// copiesParams are the parameters of copies.
type copiesParams struct {
	Key  string `query:"key" required:"true" doc:"a Key, or a plain http or https URL"`
	Post string `query:"post" maxLength:"2048" doc:"of a post of that Key, its URI"`
}

func (p keyParam) parse() (partition.Key, error) {
	var f faults
	k, err := parseKey(p.Key)
	if err != nil {
		f.add("query.key", p.Key, "%v", err)
	}
	return k, f.err()
}

func parseKey(text string) (partition.Key, error) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return "", fmt.Errorf("%w: it is empty", partition.ErrKey)
	case len(text) > maxKeyText:
		return "", fmt.Errorf("%w: longer than %d bytes", partition.ErrKey, maxKeyText)
	}
	return partition.ParseKey(text)
}

var errSeedCount = fmt.Errorf("more than %d seeds in one request: send them in parts", maxSeedKeys)

// ReadSeeds reads seeds as typed, one Key or URL per line. It skips empty lines and lines that
// begin with #. It reads at most 10,000 seeds.
func ReadSeeds(r io.Reader) ([]string, error) {
	var seeds []string
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 0, 4096), maxSeedBytes)
	for sc.Scan() {
		line := strings.TrimSpace(sc.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		if len(seeds) == maxSeedKeys {
			return nil, errSeedCount
		}
		seeds = append(seeds, line)
	}
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("read seeds: %w", err)
	}
	return seeds, nil
}

// seedBody is the JSON form of the body of POST /api/v1/seeds.
type seedBody struct {
	Keys  []string `json:"keys" doc:"Keys, or plain http or https URLs"`
	Again bool     `json:"again,omitempty" doc:"look now at those that are known, too"`
}

// parseSeeds reads the body; again is seedBody.Again.
func parseSeeds(contentType string, body []byte) (seeds []string, again bool, err error) {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil && contentType != "" {
		return nil, false, huma.Error415UnsupportedMediaType("Content-Type cannot be read")
	}
	switch media {
	case "", "application/json":
		seeds, again, err = decodeSeeds(body)
	case "text/plain":
		seeds, err = ReadSeeds(bytes.NewReader(body))
	default:
		return nil, false, huma.Error415UnsupportedMediaType("send application/json or text/plain")
	}
	switch {
	case errors.Is(err, errSeedCount) || len(seeds) > maxSeedKeys:
		return nil, false, huma.Error413RequestEntityTooLarge(errSeedCount.Error())
	case err != nil:
		return nil, false, huma.Error400BadRequest(err.Error())
	case len(seeds) == 0:
		return nil, false, huma.Error422UnprocessableEntity(`no seeds: send {"keys":["https://…"]}, or text with one a line`)
	}
	return seeds, again, nil
}

func decodeSeeds(body []byte) (seeds []string, again bool, err error) {
	var in seedBody
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		return nil, false, fmt.Errorf(`seeds must be {"keys":[…]}: %w`, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, false, errors.New("seeds: something follows the JSON object")
	}
	return in.Keys, in.Again, nil
}
