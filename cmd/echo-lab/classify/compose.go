package classify

// Composite combines any initial classifier with any history classifier. A new page is judged
// by its features, a known one by what its visits found. Exactly one of Heuristic and Bayes is
// used: Bayes if it has periods.
type Composite struct {
	Initial   Classifier
	Heuristic Heuristic
	Bayes     Bayes
}

// Page is what a Composite remembers of a page. The zero value is a new page.
type Page struct {
	Known   bool
	Window  Window
	Chances Chances
}

// First returns the memory of a new page. Under Bayes the initial class counts as strong
// evidence, with odds of about 3 to 1 (initialLog).
func (c Composite) First(v Vector) Page {
	class := c.Initial(v)
	p := Page{Known: true, Window: Window{Class: class}}
	if len(c.Bayes.Period) > 0 {
		p.Chances = make(Chances, len(c.Bayes.Period))
		for j := range p.Chances {
			if j != class {
				p.Chances[j] = -initialLog
			}
		}
	}
	return p
}

const initialLog = 1.1 // log of the odds, about 3 to 1, for the initial class

// Visit returns the memory after a visit that came days after the previous one.
func (c Composite) Visit(p Page, days float64, changed bool) Page {
	if len(c.Bayes.Period) > 0 {
		p.Chances = c.Bayes.Step(p.Chances, days, changed)
	} else {
		p.Window = c.Heuristic.Step(p.Window, changed)
	}
	return p
}

// Class returns the page's present class.
func (c Composite) Class(p Page) int {
	if len(c.Bayes.Period) > 0 {
		return c.Bayes.Class(p.Chances)
	}
	return p.Window.Class
}

// Period returns the number of days after a visit at which the page is due.
func (c Composite) Period(p Page) float64 {
	if len(c.Bayes.Period) > 0 {
		return c.Bayes.Period[c.Class(p)]
	}
	return c.Heuristic.Period[c.Class(p)]
}
