package temporal

// Figures is what the dissertation says of its crawls of pt.wikipedia.org with one scope, in
// its text on figures 8.1 and 8.2. The figures themselves have more points. Values are rounded
// as there; "" where it says nothing.
type Figures struct {
	Name   string       `json:"name"`
	Points []PaperPoint `json:"points"`
	// at the last point; the paper gives none for the temporal crawl
	Recall string `json:"general_recall"`
	// temporal divided by general at the last point, computed here
	Lift float64 `json:"lift"`
}

// PaperPoint is the precision after that many pages, in percent.
type PaperPoint struct {
	Pages    int    `json:"pages"`
	General  string `json:"general"`
	Temporal string `json:"temporal"`
}

// PaperBudget is how many pages each of the paper's crawls fetched.
const PaperBudget = 5000

// PaperResolved is the share of time expressions that the paper's tagger resolved, on the pages
// of the Portuguese web of 2003 (table 6.4).
const PaperResolved = 0.9621

// PaperFigures returns the paper's values for a scope in the form of period.Scope.String, and
// nil for other scopes.
func PaperFigures(scope string) *Figures {
	switch scope {
	case "1939-01-01..1945-12-31":
		return &Figures{Name: "Second World War", Recall: "~40", Lift: 1.8, Points: []PaperPoint{
			{100, "low", "80"}, {500, "low", ""}, {800, "low", ""}, {2000, "", "50"}, {2600, "", "50"},
			{5000, "~25", "~45"},
		}}
	case "2001-01-01..2001-12-31":
		return &Figures{Name: "11 September 2001", Recall: "~40", Lift: 2.4, Points: []PaperPoint{
			{100, ">50", ">70"}, {500, ">50", "54"}, {800, ">50", ""}, {2000, "", "~60"}, {2600, "", "~60"},
			{5000, "~25", "~60"},
		}}
	}
	return nil
}
