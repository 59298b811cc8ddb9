package contest

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
)

// Report is a whole contest: one world, one or more budgets.
type Report struct {
	World  string
	Budget float64 // visits per item per 30 days
	Seeds  int
	Page   int
	Runs   []Entry
}

// row is one line of the JSON, with the names of CLI.md, and the intervals.
type row struct {
	Policy          string  `json:"policy"`
	Budget          float64 `json:"budget"`
	Freshness       float64 `json:"freshness"`
	FreshnessCI     float64 `json:"freshness_ci95"`
	Weighted        float64 `json:"weighted_freshness"`
	AgeDays         float64 `json:"age_days"`
	AgeCI           float64 `json:"age_days_ci95"`
	ChangeRate      float64 `json:"change_rate"`
	ChangeRateCI    float64 `json:"change_rate_ci95"`
	VisitsPerChange float64 `json:"visits_per_change"`
	Missed          float64 `json:"missed"`
	MissedShare     float64 `json:"missed_share"`
	Visits          float64 `json:"visits"`
	Bytes           float64 `json:"bytes"`
	// Lead is the freshness minus the default's, Older the age minus uniform's, on the same
	// seeds. They are null when that policy did not run.
	Lead    *float64 `json:"lead_on_default"`
	LeadCI  *float64 `json:"lead_on_default_ci95"`
	Older   *float64 `json:"older_than_uniform"`
	OlderCI *float64 `json:"older_than_uniform_ci95"`
}

func (r Report) rows() []row {
	has := map[string]bool{}
	for _, e := range r.Runs {
		has[e.Policy] = true
	}
	rows := make([]row, 0, len(r.Runs))
	for _, e := range r.Runs {
		x := row{Policy: e.Policy, Budget: r.Budget, Freshness: e.Freshness.Mean, FreshnessCI: finite(e.Freshness.Half),
			Weighted: e.Weighted.Mean, AgeDays: e.AgeDays.Mean, AgeCI: finite(e.AgeDays.Half),
			ChangeRate:   e.ChangeRate.Mean,
			ChangeRateCI: finite(e.ChangeRate.Half), VisitsPerChange: e.PerChange.Mean, Missed: e.Missed.Mean,
			MissedShare: e.Lost.Mean, Visits: e.Visits.Mean, Bytes: e.Bytes.Mean}
		if has["default"] {
			half := finite(e.Lead.Half)
			x.Lead, x.LeadCI = &e.Lead.Mean, &half
		}
		if has["uniform"] {
			half := finite(e.Older.Half)
			x.Older, x.OlderCI = &e.Older.Mean, &half
		}
		rows = append(rows, x)
	}
	return rows
}

// finite returns v, or -1 where one seed gives no interval: JSON has no infinity.
func finite(v float64) float64 {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return -1
	}
	return v
}

// WriteJSON writes the reports as one object (CLI.md, echo-lab schedule).
func WriteJSON(w io.Writer, reports []Report) error {
	out := struct {
		Runs []row `json:"runs"`
	}{Runs: []row{}}
	for _, r := range reports {
		out.Runs = append(out.Runs, r.rows()...)
	}
	enc := json.NewEncoder(w)
	if err := enc.Encode(out); err != nil {
		return fmt.Errorf("contest: write JSON: %w", err)
	}
	return nil
}

// WriteCSV writes a line for each policy and budget. WriteDays writes the days.
func WriteCSV(w io.Writer, reports []Report) error {
	c := csv.NewWriter(w)
	records := [][]string{{"world", "budget", "policy", "freshness", "freshness_ci95", "weighted_freshness", "age_days",
		"age_days_ci95", "change_rate", "visits_per_change", "missed", "missed_share", "visits", "bytes"}}
	for _, r := range reports {
		for _, x := range r.rows() {
			records = append(records, []string{r.World, num(r.Budget), x.Policy, num(x.Freshness), num(x.FreshnessCI),
				num(x.Weighted),
				num(x.AgeDays), num(x.AgeCI), num(x.ChangeRate), num(x.VisitsPerChange), num(x.Missed),
				num(x.MissedShare), num(x.Visits), num(x.Bytes)})
		}
	}
	if err := c.WriteAll(records); err != nil {
		return fmt.Errorf("contest: write CSV: %w", err)
	}
	return nil
}

// WriteDays writes as CSV the figures of each day, as means over the seeds, and of each group,
// for all seeds together.
func WriteDays(w io.Writer, reports []Report) error {
	c := csv.NewWriter(w)
	records := [][]string{{"world", "budget", "policy", "what", "index", "freshness", "age_days", "change_rate",
		"visits", "hits", "bytes", "items"}}
	for _, r := range reports {
		for _, e := range r.Runs {
			for d, x := range e.Days {
				records = append(records, []string{r.World, num(r.Budget), e.Policy, "day", fmt.Sprint(d),
					num(x.Freshness), num(x.AgeDays),
					num(ratio(x.Hits, x.Visits)), num(x.Visits), num(x.Hits), num(Traffic(x.Visits, x.Hits)), ""})
			}
			for g, x := range e.Groups {
				visits, hits := float64(x.Visits), float64(x.Hits)
				records = append(records, []string{r.World, num(r.Budget), e.Policy, "group", fmt.Sprint(g),
					num(x.Freshness), num(x.AgeDays),
					num(ratio(hits, visits)), fmt.Sprint(x.Visits), fmt.Sprint(x.Hits), num(Traffic(visits, hits)),
					fmt.Sprint(x.Items)})
			}
		}
	}
	if err := c.WriteAll(records); err != nil {
		return fmt.Errorf("contest: write days: %w", err)
	}
	return nil
}

func num(v float64) string { return fmt.Sprintf("%.6g", v) }

// WriteTable writes the report for people, the default first and the oracles last, each figure
// with the half width of its 95 % interval.
func WriteTable(w io.Writer, r Report) error {
	_, err := fmt.Fprintf(w, "%s: %g visits per item per 30 days, %d seeds\n%-15s %18s %18s %9s %8s %8s\n",
		r.World, r.Budget, r.Seeds, "policy", "freshness", "age (days)", "changed", "visits/c", "missed")
	for _, e := range r.Runs {
		if err != nil {
			break
		}
		_, err = fmt.Fprintf(w, "%-15s  %.4f ± %.4f %9.3f ± %.3f %8.1f%% %8.2f %7.1f%%\n", e.Policy, e.Freshness.Mean,
			finite(e.Freshness.Half),
			e.AgeDays.Mean, finite(e.AgeDays.Half), 100*e.ChangeRate.Mean, e.PerChange.Mean, 100*e.Lost.Mean)
	}
	if err != nil {
		return fmt.Errorf("contest: write table: %w", err)
	}
	return nil
}
