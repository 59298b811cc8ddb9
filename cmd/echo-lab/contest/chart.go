package contest

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"
)

// The size of a chart, in pixels.
const (
	chartWidth  = 760
	chartHeight = 420
	chartLeft   = 60
	chartRight  = 150
	chartTop    = 40
	chartBottom = 50
)

// colours returns colours that people who see no red can also distinguish (Okabe and Ito).
func colours() []string {
	return []string{"#0072B2", "#000000", "#E69F00", "#56B4E9", "#009E73", "#CC79A7", "#D55E00", "#999999", "#C0B000"}
}

// curve is one policy's line.
type curve struct {
	name string
	x, y []float64
}

// ChartDays draws the freshness of each day, a line for each policy, as SVG.
func ChartDays(w io.Writer, r Report) error {
	var curves []curve
	for _, e := range r.Runs {
		c := curve{name: e.Policy}
		for d, x := range e.Days {
			c.x, c.y = append(c.x, float64(d)), append(c.y, x.Freshness)
		}
		curves = append(curves, c)
	}
	title := fmt.Sprintf("%s: freshness by day, %g visits per item per 30 days", r.World, r.Budget)
	return draw(w, title, "day", "freshness", curves, false)
}

// ChartPareto draws each policy's change rate and freshness, which shows the trade between
// them.
func ChartPareto(w io.Writer, r Report) error {
	var curves []curve
	for _, e := range r.Runs {
		curves = append(curves, curve{e.Policy, []float64{e.ChangeRate.Mean}, []float64{e.Freshness.Mean}})
	}
	title := fmt.Sprintf("%s: freshness against change rate, %g visits per item per 30 days", r.World, r.Budget)
	return draw(w, title, "change rate", "freshness", curves, true)
}

// axis maps values to pixels.
type axis struct{ lo, hi, from, to float64 }

func (a axis) at(v float64) float64 {
	return a.from + (v-a.lo)/(a.hi-a.lo)*(a.to-a.from)
}

func span(curves []curve, of func(curve) []float64) (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, c := range curves {
		for _, v := range of(c) {
			lo, hi = min(lo, v), max(hi, v)
		}
	}
	if !(lo <= hi) {
		return 0, 1
	}
	if pad := (hi - lo) * 0.05; pad > 0 {
		return lo - pad, hi + pad
	}
	return lo - 0.5, hi + 0.5
}

func draw(w io.Writer, title, xName, yName string, curves []curve, points bool) error {
	var b strings.Builder
	x, y := axis{from: chartLeft, to: chartWidth - chartRight}, axis{from: chartHeight - chartBottom, to: chartTop}
	x.lo, x.hi = span(curves, func(c curve) []float64 { return c.x })
	y.lo, y.hi = span(curves, func(c curve) []float64 { return c.y })
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", chartWidth, chartHeight)
	fmt.Fprintf(&b, `<title>%s</title><rect width="100%%" height="100%%" fill="white"/><text x="%d" y="20" font-size="14">%s</text>`+"\n",
		html.EscapeString(title), chartLeft, html.EscapeString(title))
	for i := range 6 {
		vx, vy := x.lo+(x.hi-x.lo)*float64(i)/5, y.lo+(y.hi-y.lo)*float64(i)/5
		fmt.Fprintf(&b, `<path d="M%.1f %.1fH%.1f" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%.3g</text><text x="%.1f" y="%d" text-anchor="middle">%.3g</text>`+"\n",
			x.from, y.at(vy), x.to, chartLeft-6, y.at(vy)+4, vy, x.at(vx), chartHeight-chartBottom+18, vx)
	}
	fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%s</text><text transform="translate(14 %.1f) rotate(-90)" text-anchor="middle">%s</text>`+"\n",
		(x.from+x.to)/2, chartHeight-10, html.EscapeString(xName), (y.from+y.to)/2, html.EscapeString(yName))
	for i, c := range curves {
		c.draw(&b, x, y, colours()[i%len(colours())], points)
		fmt.Fprintf(&b, `<text x="%d" y="%d" fill="%s">%s</text>`+"\n", chartWidth-chartRight+10, chartTop+16*i,
			colours()[i%len(colours())], html.EscapeString(c.name))
	}
	b.WriteString("</svg>\n")
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("contest: draw: %w", err)
	}
	return nil
}

func (c curve) draw(b *strings.Builder, x, y axis, colour string, points bool) {
	if points {
		for i := range c.x {
			fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="5" fill="%s"/>`+"\n", x.at(c.x[i]), y.at(c.y[i]), colour)
		}
		return
	}
	fmt.Fprintf(b, `<polyline fill="none" stroke="%s" stroke-width="1.5" points="`, colour)
	for i := range c.x {
		fmt.Fprintf(b, "%.1f,%.1f ", x.at(c.x[i]), y.at(c.y[i]))
	}
	b.WriteString(`"/>` + "\n")
}
