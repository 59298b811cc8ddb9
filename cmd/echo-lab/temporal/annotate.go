package temporal

import (
	"fmt"
	"strings"

	"github.com/echo-node/echo-node/crawler/judge/period"
)

// HAREM writes text with its expressions marked as in the Second HAREM, the evaluation of
// Portuguese entity recognition, with the value as VAL_NORM:
//
//	<EM ID="1" CATEG="TIME" TYPE="CALENDAR_REF" SUBTYPE="DATE" VAL_NORM="2008-XX-XX">2008</EM>
//
// expressions are those that period.Tag found in text. The text is escaped for XML.
func HAREM(text string, expressions []period.Expression) string {
	return annotate(text, expressions, func(i int, e *period.Expression) (open, end string) {
		kind := `TYPE="CALENDAR_REF" SUBTYPE="DATE"`
		switch e.Form {
		case period.FormTime:
			kind = `TYPE="CALENDAR_REF" SUBTYPE="HOUR"`
		case period.FormInterval:
			kind = `TYPE="CALENDAR_REF" SUBTYPE="INTERVAL"`
		case period.FormDuration:
			kind = `TYPE="DURATION"`
		case period.FormFrequency:
			kind = `TYPE="FREQUENCY"`
		}
		return fmt.Sprintf(`<EM ID="%d" CATEG="TIME" %s VAL_NORM="%s">`, i+1, kind, e.Value), "</EM>"
	})
}

// TIMEX3 writes text with its expressions marked as in TimeML. Unknown parts at the end of a
// value are left out: 2000-06 for 2000-06-XX.
func TIMEX3(text string, expressions []period.Expression) string {
	return annotate(text, expressions, func(i int, e *period.Expression) (open, end string) {
		kind := "DATE"
		switch e.Form {
		case period.FormTime:
			kind = "TIME"
		case period.FormDuration:
			kind = "DURATION"
		case period.FormFrequency:
			kind = "SET"
		}
		return fmt.Sprintf(`<TIMEX3 tid="t%d" type="%s" value="%s">`, i+1, kind, timexValue(e)), "</TIMEX3>"
	})
}

// timexValue returns e's value as TimeML writes it.
func timexValue(e *period.Expression) string {
	if e.Form == period.FormFrequency {
		_, value, _ := strings.Cut(e.Value, "/")
		return value
	}
	ends := strings.Split(e.Value, "/")
	for i, v := range ends {
		for strings.HasSuffix(v, "-XX") {
			v = strings.TrimSuffix(v, "-XX")
		}
		if head := strings.TrimRight(v, "X"); head != "" && head[0] >= '0' && head[0] <= '9' {
			v = head // 194X is the decade 194, 18XX the century 18
		}
		ends[i] = v
	}
	return strings.Join(ends, "/")
}

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")

// annotate puts the result of mark around each expression.
func annotate(
	text string, expressions []period.Expression, mark func(int, *period.Expression) (open, end string),
) string {
	var b strings.Builder
	at := 0
	for i := range expressions {
		e := &expressions[i]
		open, end := mark(i, e)
		b.WriteString(escaper.Replace(text[at:e.From]))
		b.WriteString(open + escaper.Replace(text[e.From:e.To]) + end)
		at = e.To
	}
	b.WriteString(escaper.Replace(text[at:]))
	return b.String()
}
