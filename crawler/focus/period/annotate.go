package period

import (
	"fmt"
	"strings"
)

// HAREM writes text with its expressions marked as in the Second HAREM, the
// evaluation of Portuguese entity recognition, with the value as VAL_NORM:
//
//	<EM ID="1" CATEG="TIME" TYPE="CALENDAR_REF" SUBTYPE="DATE" VAL_NORM="2008-XX-XX">2008</EM>
//
// expressions are those that Tag found in text. The text is escaped for XML.
func HAREM(text string, expressions []Expression) string {
	return annotate(text, expressions, func(i int, e *Expression) (open, end string) {
		kind := `TYPE="CALENDAR_REF" SUBTYPE="DATE"`
		switch e.Form {
		case FormTime:
			kind = `TYPE="CALENDAR_REF" SUBTYPE="HOUR"`
		case FormInterval:
			kind = `TYPE="CALENDAR_REF" SUBTYPE="INTERVAL"`
		case FormDuration:
			kind = `TYPE="DURATION"`
		case FormFrequency:
			kind = `TYPE="FREQUENCY"`
		}
		return fmt.Sprintf(`<EM ID="%d" CATEG="TIME" %s VAL_NORM="%s">`, i+1, kind, e.Value), "</EM>"
	})
}

// TIMEX3 writes text with its expressions marked as in TimeML, unknown parts at
// the end of a value left out: 2000-06 for 2000-06-XX.
func TIMEX3(text string, expressions []Expression) string {
	return annotate(text, expressions, func(i int, e *Expression) (open, end string) {
		kind := "DATE"
		switch e.Form {
		case FormTime:
			kind = "TIME"
		case FormDuration:
			kind = "DURATION"
		case FormFrequency:
			kind = "SET"
		}
		return fmt.Sprintf(`<TIMEX3 tid="t%d" type="%s" value="%s">`, i+1, kind, timexValue(e)), "</TIMEX3>"
	})
}

// timexValue is e's value as TimeML writes it.
func timexValue(e *Expression) string {
	if e.Form == FormFrequency {
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

func annotate(text string, expressions []Expression, mark func(int, *Expression) (open, end string)) string {
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
