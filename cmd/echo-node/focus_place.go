package main

import (
	"fmt"
	"strings"

	"github.com/echo-node/echo-node/partition/geo"
)

type placeCmd struct {
	Country string `placeholder:"PT" help:"A likely country (ISO code), for ambiguous names."`
	Lang    string `placeholder:"pt-PT" help:"Language of the author (BCP 47): weak evidence."`
	Zone    string `placeholder:"Europe/Lisbon" help:"Time zone of the author: weak evidence."`
}

// Help returns the text below the usage.
func (placeCmd) Help() string {
	return `Examples:
  echo 'Margem Sul 🇵🇹' | echo-node focus place
  printf 'natural de Viseu, a viver em Londres\nLagos\nna lua\n' | echo-node focus place --zone Europe/Lisbon
  cut -f2 profiles.tsv | echo-node focus place | jq -r '[.country, .admin1, .confidence] | @tsv'

A line of input is the location field of a profile: a town, a nickname, a flag, a time zone, coordinates
(ÜT: 38.7,-9.1), several places, a joke. The output has a line for each, in the same order:
  {"place","country","admin1","lat","lon","cell","confidence","candidates"}
  place      the name in GeoNames; null when unknown, and then only candidates
             may have a value
  country    ISO 3166-1 code
  admin1     first division: a district of Portugal, a state; null for a country
  lat, lon   degrees
  cell       token of the S2 cell of level 7 around the place
  confidence 0 to 1; below 0.5 no place is given
  candidates what the text may mean, most likely first, at most 5; also when
             place is null (Lagos is in Nigeria and Portugal)
Of two places with only / or & between them, the first counts. After an arrow, "vivo em" or "based" comes the place that counts.
It works offline. Place names: GeoNames (https://www.geonames.org), CC BY 4.0.`
}

// placeLine is the output for one location (CLI.md). All its keys are always present.
type placeLine struct {
	Place      *string         `json:"place"`
	Country    *string         `json:"country"`
	Admin1     *string         `json:"admin1"`
	Lat        *float64        `json:"lat"`
	Lon        *float64        `json:"lon"`
	Cell       *string         `json:"cell"`
	Confidence float64         `json:"confidence"`
	Candidates []geo.Candidate `json:"candidates"`
}

func placeLineOf(r geo.Resolution) placeLine {
	out := placeLine{Confidence: r.Confidence, Candidates: r.Candidates}
	if out.Candidates == nil {
		out.Candidates = []geo.Candidate{}
	}
	p := r.Place
	if p == nil {
		return out
	}
	out.Place, out.Country = &p.Name, &p.Country
	if p.Admin1 != "" {
		out.Admin1 = &p.Admin1
	}
	if p.Cell != "" { // otherwise the gazetteer does not know its location
		out.Lat, out.Lon, out.Cell = &p.Lat, &p.Lon, &p.Cell
	}
	return out
}

// Run resolves locations.
func (c *placeCmd) Run(p *program) error {
	if c.Country != "" && len(c.Country) != 2 {
		return usage("country %s: give the two letters of ISO 3166-1, such as PT", c.Country)
	}
	g, err := geo.Open()
	if err != nil {
		return err
	}
	hints := geo.Hints{Country: strings.ToUpper(c.Country), Language: c.Lang, TimeZone: c.Zone}
	w, enc := jsonLines(p.stdout)
	if err := eachLine(p.stdin, func(n int, line string) error {
		if err := enc.Encode(placeLineOf(g.Resolve(line, hints))); err != nil {
			return fmt.Errorf("write line %d: %w", n, err)
		}
		return nil
	}); err != nil {
		return err
	}
	return w.Flush()
}
