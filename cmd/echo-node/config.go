package main

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"

	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/partition"
)

// configFile gives kong the values of flags from a YAML file. The order is config file <
// environment < flag; kong asks only for flags that are not given.
type configFile struct{ values map[string]any }

func loadConfig(r io.Reader) (kong.Resolver, error) {
	c := configFile{values: map[string]any{}}
	if err := yaml.NewDecoder(r).Decode(&c.values); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("config file: %w", err)
	}
	return c, nil
}

// Validate refuses a key that is no flag of any command. A misspelt limit must not silently
// mean no limit.
func (c configFile) Validate(app *kong.Application) error {
	known := map[string]bool{}
	_ = kong.Visit(app, func(n kong.Visitable, next kong.Next) error {
		if f, ok := n.(*kong.Flag); ok {
			known[f.Name] = true
		}
		return next(nil)
	})
	var unknown []string
	for k := range c.values {
		if !known[k] {
			unknown = append(unknown, k)
		}
	}
	if len(unknown) > 0 {
		sort.Strings(unknown)
		return fmt.Errorf("config file: no flag is called %s", strings.Join(unknown, ", "))
	}
	return nil
}

// Resolve returns the value of one flag. It returns nil when the file does not have the flag or
// the environment takes precedence.
func (c configFile) Resolve(_ *kong.Context, _ *kong.Path, f *kong.Flag) (any, error) {
	v, ok := c.values[f.Name]
	if !ok {
		return nil, nil
	}
	if slices.ContainsFunc(f.Envs, func(e string) bool { _, set := os.LookupEnv(e); return set }) {
		return nil, nil
	}
	if list, ok := v.([]any); ok {
		if f.Tag.Sep == -1 { // its values may contain commas
			return list, nil
		}
		parts := make([]string, len(list))
		for i, x := range list {
			parts[i] = fmt.Sprint(x)
		}
		return strings.Join(parts, ","), nil
	}
	return fmt.Sprint(v), nil
}

// size is a number of bytes: 512, 64KB, 10MiB, 2GB.
type size int64

var units = []struct {
	suffix string
	factor int64
}{{"KIB", 1 << 10}, {"MIB", 1 << 20}, {"GIB", 1 << 30}, {"TIB", 1 << 40}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9},
	{"TB", 1e12}, {"B", 1}}

// UnmarshalText parses a size.
func (s *size) UnmarshalText(b []byte) error {
	text, factor := strings.ToUpper(strings.TrimSpace(string(b))), int64(1)
	for _, u := range units {
		if rest, ok := strings.CutSuffix(text, u.suffix); ok {
			text, factor = strings.TrimSpace(rest), u.factor
			break
		}
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= 0) || n*float64(factor) >= 1<<62 {
		return fmt.Errorf("%q is not a size: give bytes, or 64KB, 10MiB, 2GB", b)
	}
	*s = size(n * float64(factor))
	return nil
}

// span is a duration like days, or 0 for none.
type span time.Duration

// UnmarshalText parses a span.
func (s *span) UnmarshalText(b []byte) error {
	if string(b) == "0" {
		*s = 0
		return nil
	}
	return (*days)(s).UnmarshalText(b)
}

// orNone is for options whose zero value means their default and whose negative value means
// none.
func (s span) orNone() time.Duration {
	if s == 0 {
		return -1
	}
	return time.Duration(s)
}

// location is "LAT,LON" in degrees.
type location struct{ *partition.Point }

// UnmarshalText parses a location.
func (l *location) UnmarshalText(b []byte) error {
	lat, lon, ok := strings.Cut(string(b), ",")
	p := partition.Point{}
	var err1, err2 error
	p.Lat, err1 = strconv.ParseFloat(strings.TrimSpace(lat), 64)
	p.Lon, err2 = strconv.ParseFloat(strings.TrimSpace(lon), 64)
	if !ok || err1 != nil || err2 != nil || !(p.Lat >= -90 && p.Lat <= 90 && p.Lon >= -180 && p.Lon <= 180) {
		return fmt.Errorf("%q is not a location: give latitude,longitude in degrees, as in 38.72,-9.14", b)
	}
	l.Point = &p
	return nil
}

// readHosts reads a fixed resolver: lines of "ADDRESS NAME..." as in hosts(5).
func readHosts(file string) (map[string]netip.Addr, error) {
	if file == "" {
		return nil, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("--hosts: %w", err)
	}
	defer f.Close()
	hosts, err := fetch.ParseHosts(f)
	if err != nil {
		return nil, fmt.Errorf("--hosts %s: %w", file, err)
	}
	return hosts, nil
}

// parseKeys parses keys given on the command line. It reports all malformed ones at once.
func parseKeys(texts []string) ([]partition.Key, error) {
	out := make([]partition.Key, 0, len(texts))
	var faults []error
	for _, text := range texts {
		key, err := partition.ParseKey(text)
		if err != nil {
			faults = append(faults, fmt.Errorf("%.200q: %w", text, err))
			continue
		}
		out = append(out, key)
	}
	if len(faults) > 0 {
		return nil, &usageError{errors.Join(faults...)}
	}
	return out, nil
}

// badLine is a line that is no key, in a file of keys.
type badLine struct {
	file string
	line int // from 1
	text string
	err  error
}

func (b badLine) Error() string {
	return fmt.Sprintf("%s, line %d: %.200q: %v", b.file, b.line, b.text, b.err)
}

// readKeys reads a file of keys, one per line. It skips empty lines and lines that begin with
// #. Lines that are no keys are in bad. An empty file name gives no keys.
func readKeys(file string) (keys []partition.Key, bad []badLine, err error) {
	if file == "" {
		return nil, nil, nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, &usageError{err}
	}
	n := 0
	for line := range strings.SplitSeq(strings.TrimPrefix(string(b), "\ufeff"), "\n") {
		n++
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, err := partition.ParseKey(line)
		if err != nil {
			bad = append(bad, badLine{file, n, line, err})
			continue
		}
		keys = append(keys, key)
	}
	return keys, bad, nil
}

// readSeeds returns the keys of the command line and of a file. Lines of the file that are no
// keys are in bad. They are an error with strict, or when the file has no key at all.
func readSeeds(texts []string, file string, strict bool) (keys []partition.Key, bad []badLine, err error) {
	if keys, err = parseKeys(texts); err != nil {
		return nil, nil, err
	}
	more, bad, err := readKeys(file)
	if err != nil {
		return nil, nil, fmt.Errorf("--seeds: %w", err)
	}
	if strict || len(more) == 0 {
		if err := joinLines(bad); err != nil {
			return nil, nil, usage("--seeds: %w", err)
		}
	}
	return append(keys, more...), bad, nil
}

// maxBadLines is how many bad lines are printed; the others are only counted.
const maxBadLines = 20

// joinLines returns bad lines as one error, or nil when there are none.
func joinLines(bad []badLine) error {
	var faults []error
	for _, b := range bad[:min(len(bad), maxBadLines)] {
		faults = append(faults, b)
	}
	if more := len(bad) - maxBadLines; more > 0 {
		faults = append(faults, fmt.Errorf("and %d more lines", more))
	}
	return errors.Join(faults...)
}
