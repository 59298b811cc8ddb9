package temporal

import (
	"fmt"
	"strings"
)

// step is the distance between the points of a curve.
const step = 100

// CSV returns the curves as a table: n, then precision and recall of each order.
func CSV(curves []Curve, budget, total int) string {
	var b strings.Builder
	b.WriteString("n")
	for _, c := range curves {
		fmt.Fprintf(&b, ",%s precision,%s recall", c.Order, c.Order)
	}
	b.WriteString("\n")
	for n := step; n <= budget; n += step {
		fmt.Fprintf(&b, "%d", n)
		for _, c := range curves {
			fmt.Fprintf(&b, ",%.4f,%.4f", c.Precision(n), c.Recall(n, total))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// The size of a chart, in pixels.
const (
	chartWidth, chartHeight = 640, 360
	chartLeft, chartBottom  = 50, 30
)

var colors = [...]string{"#888888", "#c0c0c0", "#1f77b4", "#9ecae1", "#9467bd", "#d62728", "#2ca02c"}

// SVG returns the precision of the curves as a chart; title is text without markup.
func SVG(title string, curves []Curve, budget int) string {
	var b strings.Builder
	x := func(n int) float64 { return chartLeft + float64(n)/float64(budget)*(chartWidth-chartLeft-10) }
	y := func(p float64) float64 { return (1-p)*(chartHeight-chartBottom-30) + 30 }
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" `, chartWidth, chartHeight)
	fmt.Fprintf(&b, `font-family="sans-serif" font-size="12"><rect width="100%%" height="100%%" fill="white"/>`)
	fmt.Fprintf(&b, `<text x="%d" y="18">%s</text>`, chartLeft, title)
	for i := range 6 {
		p := float64(i) / 5
		fmt.Fprintf(&b, `<path d="M%d %.1fH%d" stroke="#ddd"/>`, chartLeft, y(p), chartWidth-10)
		fmt.Fprintf(&b, `<text x="10" y="%.1f">%.1f</text>`, y(p)+4, p)
		n := budget * i / 5
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%d</text>`, x(n), chartHeight-10, n)
	}
	for i, c := range curves {
		var line strings.Builder
		for n := step; n <= budget; n += step {
			fmt.Fprintf(&line, "%.1f,%.1f ", x(n), y(c.Precision(n)))
		}
		color := colors[i%len(colors)]
		fmt.Fprintf(&b, `<polyline fill="none" stroke="%s" stroke-width="2" points="%s"/>`, color, line.String())
		fmt.Fprintf(&b, `<text x="%d" y="%d" fill="%s">%s</text>`, chartWidth-120, 50+16*i, color, c.Order)
	}
	b.WriteString("</svg>\n")
	return b.String()
}
