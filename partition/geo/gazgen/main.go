// Command gazgen makes the table of places that package atlas embeds:
//
//	go run ./partition/geo/gazgen places.tsv.gz partition/geo/atlas/places.gaz
//
// The input has one place per line, with tabs between the columns. The columns are: name, other
// names separated by |, country, first division, latitude, longitude and population. Then come the
// kind (GeoNames feature code), the second division and the GeoNames id. The same input gives the
// same output.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/echo-node/echo-node/partition/geo/atlas"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: gazgen places.tsv.gz places.gaz")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "gazgen:", err)
		os.Exit(1)
	}
}

// run reads the file in, and writes the table to the file out.
func run(in, out string) error {
	f, err := os.Open(in)
	if err != nil {
		return err
	}
	defer f.Close() // the file is only read
	z, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("%s: %w", in, err)
	}
	entries, err := read(z)
	if err != nil {
		return fmt.Errorf("%s: %w", in, err)
	}
	var b bytes.Buffer
	if err := atlas.Encode(&b, entries); err != nil {
		return err
	}
	names := 0
	for _, e := range entries {
		names += len(e.Names)
	}
	fmt.Printf("%d places, %d other names, %d bytes\n", len(entries), names, b.Len())
	return os.WriteFile(out, b.Bytes(), 0o644)
}

// read reads all places, and sorts them by country, division, rank and latitude.
func read(r io.Reader) ([]atlas.Entry, error) {
	var entries []atlas.Entry
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		e, err := parse(strings.Split(lines.Text(), "\t"))
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		entries = append(entries, e)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	// Places of one division are adjacent, because their columns then compress well.
	slices.SortStableFunc(entries, func(a, b atlas.Entry) int {
		return cmp.Or(cmp.Compare(a.Country, b.Country), cmp.Compare(a.Admin1, b.Admin1), cmp.Compare(a.Rank, b.Rank),
			cmp.Compare(a.Lat, b.Lat))
	})
	return entries, nil
}

// parse reads the columns of one place.
func parse(cols []string) (atlas.Entry, error) {
	if len(cols) < 9 {
		return atlas.Entry{}, fmt.Errorf("%d columns", len(cols))
	}
	e := atlas.Entry{Place: atlas.Place{Name: cols[0], Country: cols[2], Admin1: cols[3], Rank: rank(cols[7])}}
	if e.Country == "PT" {
		e.Admin2 = strings.TrimSuffix(cols[8], " Municipality")
		e.Name = strings.TrimSuffix(e.Name, " Municipality")
	}
	var err error
	if e.Population, err = strconv.Atoi(cols[6]); err != nil {
		return e, fmt.Errorf("population: %w", err)
	}
	if cols[4] != "" {
		e.Located = true
		if e.Lat, err = strconv.ParseFloat(cols[4], 64); err != nil {
			return e, fmt.Errorf("latitude: %w", err)
		}
		if e.Lon, err = strconv.ParseFloat(cols[5], 64); err != nil {
			return e, fmt.Errorf("longitude: %w", err)
		}
	}
	e.Names = names(e.Place, strings.Split(cols[1], "|"))
	return e, nil
}

// rank returns the rank of a GeoNames feature code.
func rank(kind string) atlas.Rank {
	switch kind {
	case "PCLI":
		return atlas.Country
	case "ADM1":
		return atlas.Region
	case "ADM2":
		return atlas.Municipality
	case "PPLC":
		return atlas.Capital
	case "PPLA":
		return atlas.Seat
	case "PPLA2", "PPLA3", "PPLA4", "PPLA5":
		return atlas.Town
	case "PPLX", "PPLL":
		return atlas.Part
	}
	return atlas.Locality
}

// names selects other names. The first ones are exonyms in neighbouring languages. Further ones are
// transliterations that people do not type; only large places get them.
func names(p atlas.Place, all []string) []string {
	most := 0
	switch home := p.Country == "PT" || p.Country == "BR"; {
	case p.Rank == atlas.Country:
		most = 20
	case home || p.Population >= 1_000_000:
		most = 12
	case p.Population >= 100_000:
		most = 5
	case p.Population >= 15_000:
		most = 2
	}
	seen := map[string]bool{atlas.Fold(p.Name): true, "": true}
	var out []string
	for _, name := range all {
		folded := atlas.Fold(name)
		if len(out) == most {
			break
		}
		if seen[folded] || len(name) > 40 || (code(name) && !keepCode(p)) {
			continue
		}
		seen[folded] = true
		out = append(out, name)
	}
	return out
}

// code reports whether a name looks like the letters of an airport or a country.
func code(name string) bool {
	return len(name) <= 3 && !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsUpper(r) })
}

// keepCode reports whether a place is so well known that people write its code.
func keepCode(p atlas.Place) bool {
	return p.Rank == atlas.Country || p.Population >= 1_000_000 || (p.Country == "PT" && p.Population >= 100_000)
}
