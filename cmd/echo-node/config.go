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

// configFile answers kong's questions for flags from a YAML file. The order is
// config file < environment < flag; kong asks only for flags not given.
type configFile struct{ values map[string]any }

func loadConfig(r io.Reader) (kong.Resolver, error) {
	c := configFile{values: map[string]any{}}
	if err := yaml.NewDecoder(r).Decode(&c.values); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("config file: %w", err)
	}
	return c, nil
}

// Validate refuses a key that is no flag of any command: a misspelt limit must
// not be silently no limit.
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

// Resolve gives the value of one flag, nil when the file or the environment's
// precedence says nothing.
func (c configFile) Resolve(_ *kong.Context, _ *kong.Path, f *kong.Flag) (any, error) {
	v, ok := c.values[f.Name]
	if !ok {
		return nil, nil
	}
	if slices.ContainsFunc(f.Envs, func(e string) bool { _, set := os.LookupEnv(e); return set }) {
		return nil, nil
	}
	if list, ok := v.([]any); ok {
		if f.Tag.Sep == -1 { // its values may have commas
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
}{{"KIB", 1 << 10}, {"MIB", 1 << 20}, {"GIB", 1 << 30}, {"TIB", 1 << 40}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}}

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

// span is a duration as of days, or 0 for none.
type span time.Duration

// UnmarshalText parses a span.
func (s *span) UnmarshalText(b []byte) error {
	if string(b) == "0" {
		*s = 0
		return nil
	}
	return (*days)(s).UnmarshalText(b)
}

// orNone is for options of which zero is their default, and less than zero is none.
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

// readHosts reads a fixed resolver, lines of "ADDRESS NAME..." as in hosts(5).
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

// readSeeds parses keys given on the command line and in a file (one a line, #
// comments). All malformed ones are reported at once.
func readSeeds(keys []string, file string) ([]partition.Key, error) {
	if file != "" {
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, usage("--seeds: %w", err)
		}
		for _, line := range strings.Split(string(b), "\n") {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				keys = append(keys, line)
			}
		}
	}
	out := make([]partition.Key, 0, len(keys))
	var faults []error
	for _, k := range keys {
		key, err := partition.ParseKey(k)
		if err != nil {
			faults = append(faults, fmt.Errorf("%.200q: %w", k, err))
			continue
		}
		out = append(out, key)
	}
	if len(faults) > 0 {
		return nil, &usageError{errors.Join(faults...)}
	}
	return out, nil
}
