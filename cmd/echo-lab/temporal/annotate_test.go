package temporal

import (
	"testing"

	"github.com/echo-node/echo-node/crawler/judge/period"
)

func TestAnnotate(t *testing.T) {
	text := "Em junho de 2000 & todos os dias, nos anos 40, durante dois meses, às 14:30"
	found := period.Tag(text, goldDay)
	want := `Em <EM ID="1" CATEG="TIME" TYPE="CALENDAR_REF" SUBTYPE="DATE" VAL_NORM="2000-06-XX">junho de 2000</EM>` +
		" &amp; " +
		`<EM ID="2" CATEG="TIME" TYPE="FREQUENCY" VAL_NORM="R/P1D">todos os dias</EM>, ` +
		`nos <EM ID="3" CATEG="TIME" TYPE="CALENDAR_REF" SUBTYPE="DATE" VAL_NORM="194X-XX-XX">anos 40</EM>, ` +
		`<EM ID="4" CATEG="TIME" TYPE="DURATION" VAL_NORM="P2M">durante dois meses</EM>, ` +
		`às <EM ID="5" CATEG="TIME" TYPE="CALENDAR_REF" SUBTYPE="HOUR" VAL_NORM="2013-01-21T14:30">14:30</EM>`
	if got := HAREM(text, found); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	want = `Em <TIMEX3 tid="t1" type="DATE" value="2000-06">junho de 2000</TIMEX3> &amp; ` +
		`<TIMEX3 tid="t2" type="SET" value="P1D">todos os dias</TIMEX3>, ` +
		`nos <TIMEX3 tid="t3" type="DATE" value="194">anos 40</TIMEX3>, ` +
		`<TIMEX3 tid="t4" type="DURATION" value="P2M">durante dois meses</TIMEX3>, ` +
		`às <TIMEX3 tid="t5" type="TIME" value="2013-01-21T14:30">14:30</TIMEX3>`
	if got := TIMEX3(text, found); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := TIMEX3("XXXX", period.Tag("em maio", goldDay)[:0]); got != "XXXX" {
		t.Error(got)
	}
}
