package temporal

// Figures are what the dissertation says of its crawls of pt.wikipedia.org with one scope, in its text on
// figures 8.1 and 8.2: the figures themselves have more points. Rounded as there; "" where it says nothing.
type Figures struct {
	Name   string       `json:"name"`
	Points []PaperPoint `json:"points"`
	Recall string       `json:"general_recall"` // at the last point; of the temporal crawl none is given
	Lift   float64      `json:"lift"`           // temporal over general at the last point: our division
}

// PaperPoint is the precision after so many pages, in percent.
type PaperPoint struct {
	Pages    int    `json:"pages"`
	General  string `json:"general"`
	Temporal string `json:"temporal"`
}

// PaperBudget is how many pages each of the paper's crawls fetched.
const PaperBudget = 5000

// PaperResolved is the share of time expressions that the paper's tagger resolved, on the pages of the Portuguese
// web of 2003 (table 6.4).
const PaperResolved = 0.9621

// PaperFigures is what the paper has for a scope, in the form of period.Scope.String; nil for other scopes.
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
