package churn

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Table writes r for people, the swarm next to the baseline.
func (r Result) Table(out io.Writer) error {
	fmt.Fprintf(out, "%d peers, partition %s, replicas %d, delay %.0f ms (a gap under %.0f ms is a violation), %d sites\n",
		r.Peers, r.Partition, r.Replicas, r.DelayMS, r.DelayMS-r.ToleredMS, r.Sites)
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', tabwriter.AlignRight)
	columns := []Figures{r.Figures}
	head := "\tswarm\t"
	if r.Baseline != nil {
		columns = append(columns, *r.Baseline)
		head += "baseline\t"
	}
	fmt.Fprintln(w, head)
	row := func(name string, of func(Figures) string) {
		fmt.Fprint(w, name+"\t")
		for _, f := range columns {
			fmt.Fprint(w, of(f)+"\t")
		}
		fmt.Fprintln(w)
	}
	number := func(format string, of func(Figures) any) func(Figures) string {
		return func(f Figures) string { return fmt.Sprintf(format, of(f)) }
	}
	known := func(format string, of func(Figures) *float64) func(Figures) string {
		return func(f Figures) string {
			if p := of(f); p != nil {
				return fmt.Sprintf(format, *p)
			}
			return "-"
		}
	}
	row("pages", number("%d", func(f Figures) any { return f.Pages }))
	row("expected", number("%d", func(f Figures) any { return f.Expected }))
	row("coverage", number("%.4f", func(f Figures) any { return f.Coverage }))
	row("overlap", number("%.4f", func(f Figures) any { return f.Overlap }))
	row("links lost", number("%d", func(f Figures) any { return f.LinksLost }))
	row("records lost", number("%d", func(f Figures) any { return f.RecordsLost }))
	row("records twice", number("%d", func(f Figures) any { return f.RecordsTwice }))
	row("politeness violations", number("%d", func(f Figures) any { return f.Violations }))
	row("smallest gap, ms", number("%.1f", func(f Figures) any { return f.MinGapMS }))
	row("longest take-over, s", known("%.1f", func(f Figures) *float64 { return f.Takeover }))
	row("median take-over, s", known("%.1f", func(f Figures) *float64 { return f.TakeoverMid }))
	row("of them by other peers", known("%.2f", func(f Figures) *float64 { return f.ByOthers }))
	row("URLs sent a page", number("%.2f", func(f Figures) any { return f.URLs }))
	row("bytes sent a page", number("%.0f", func(f Figures) any { return f.Bytes }))
	row("balance (slices)", known("%.2f", func(f Figures) *float64 { return f.Balance }))
	row("balance (pages)", number("%.2f", func(f Figures) any { return f.BalancePages }))
	row("contravariance", known("%.2f", func(f Figures) *float64 { return f.Contra }))
	row("median km to owner", known("%.0f", func(f Figures) *float64 { return f.MedianKM }))
	row("kills, cuts, joins",
		number("%s", func(f Figures) any { return fmt.Sprint(f.Kills, ", ", f.Cuts, ", ", f.Joins) }))
	row("seconds", number("%.1f", func(f Figures) any { return f.Seconds }))
	row("ended by being done", number("%v", func(f Figures) any { return f.Idle }))
	if err := w.Flush(); err != nil {
		return err
	}
	for _, f := range columns[:1] {
		if f.Note != "" {
			fmt.Fprintln(out, "note:", f.Note)
		}
		for _, what := range f.First {
			fmt.Fprintln(out, "lost:", what)
		}
		for _, k := range f.Each {
			during := ""
			if k.Cut {
				during = ", in the cut"
			}
			fmt.Fprintf(out, "kill of %s at %.0f s%s: %d sites under way, taken over after %.1f s at the latest, %.1f s in the median, %d by others\n",
				k.Peer, k.At, during, k.Sites, k.Longest, k.Median, k.ByOthers)
		}
		for _, what := range f.Offences {
			fmt.Fprintln(out, what)
		}
	}
	return nil
}
