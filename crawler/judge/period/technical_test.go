package period

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// manual is a text that makes any text with it one about programs.
const manual = "The function reads its configuration from a file. The default of the buffer is a string of the server's package, " +
	"and the parameter names the directory of the header files that the compiler reads.\n"

// times returns the times that text talks about, in the form of Content.
func times(text string) string { return Content(Tag(text, time.Time{}), 16).String() }

func year(years ...string) string {
	var all []string
	for _, y := range years {
		all = append(all, y+"-01-01.."+y+"-12-31")
	}
	return strings.Join(all, ",")
}

// Numbers in manuals are no years, unless the text marks them as years.
func TestTechnical(t *testing.T) {
	for line, want := range map[string]string{
		"A limit of 1000 entries":                                   "",
		"the length (e.g. 1024) of the salt":                        "",
		"Ports below 1024, and values between 1100 and 1200":        "",
		"with a mean of 1060 and a deviation of 150":                "",
		"The call returns 1200.":                                    "",
		"from 1 to 1000":                                            "",
		"from 1000 to 2000":                                         "",
		"after 1000 iterations":                                     "",
		"in 1500 ms":                                                "",
		"in 1024 bytes":                                             "",
		"1180\n1210\n1950\n1910":                                    "",
		"a range of 1000-2000":                                      "",
		"Version 8.4.21 of the package":                             "",
		"See RFC 2045, 2046 and 2047.":                              "",
		"Visual Studio 2015, Windows Server 2008 and SQL:2003":      "",
		"ISO/IEC 9075:2016":                                         "",
		"CVE-2026-116303":                                           "",
		"Copyright © 1996-2020 The Frob Group":                      "",
		"Copyright (c) 2001, 2003 and 2005 A. N. Author":            "",
		"© A. N. Author 1999":                                       "",
		"1999 © A. N. Author":                                       "",
		"The standard was published in 1998.":                       year("1998"),
		"As of 2015, it is believed to be safe.":                    year("2015"),
		"The 2016 version is another one.":                          year("2016"),
		"Knuth (1997) says so":                                      year("1997"),
		"(Knuth, 1997)":                                             year("1997"),
		"Addison-Wesley, Reading, 1995.":                            year("1995"),
		"IBM Systems Journal, Vol. 8, No. 2, 1969, pp. 136-146":     year("1969"),
		"Since 1987 the function is there.":                         year("1987"),
		"In 1582 the calendar was changed.":                         year("1582"),
		"from 1989 to 1991":                                         "1989-01-01..1991-12-31",
		"Release date: 2022-10-13":                                  "2022-10-13..2022-10-13",
		"Last revised: May 19, 2023":                                "",
		"Last revised: May 19, 2023 at 08:12:08 GMT":                "",
		"Windows 7-8-10":                                            "",
		"Zones: Indian/Christmas, Indian/Cocos since 2004":          year("2004"),
		"Accepted formats are: \"2003-02-10\" and '2003/02/10'":     "",
		"in the style 10 May 2003, of the year (for example, 1993)": "",
		"For example, in 2004 it was changed":                       year("2004"),
		"A date (e.g. 2002-02-10) or (eg: 10 May 2003)":             "",
		"Last updated on October 07, 2026.":                         "",
		"1. Introdução\n4.2.19. Finalização\n10.11.12 Notas":        "",
		"Since 2004.\nIt starts on the first Sunday of April.":      year("2004"),
		"the year 1000":                                             year("1000"),
	} {
		if got := times(manual + line); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

// In a text about other things, such a number is a year. The year of a copyright notice never
// counts.
func TestNotTechnical(t *testing.T) {
	for line, want := range map[string]string{
		"Última atualização: 3 de maio de 2010":              "",
		"Última actualização em 2010-05-03":                  "",
		"Na última revisão da lei, em 2010, nada mudou":      year("2010"),
		"Manu da korben.info e Couchet da april.org em 2010": year("2010"),
		"updated in 2010":       year("2010"),
		"4.2.19. Finalização":   "",
		"em 15.06.10 choveu":    "2010-06-15..2010-06-15",
		"© 1999 Jornal da Vila": "",
		"Copyright 1998-2004 Jornal da Vila. Todos os direitos": "",
		"Todos os direitos reservados 2001":                     "",
		"A Lei do Copyright de 1976":                            year("1976"),
		"The Copyright Act of 1976":                             year("1976"),
		"de 1139 a 1185 reinou D. Afonso":                       "1139-01-01..1185-12-31",
		"Jogos Olímpicos de 2012":                               year("2012"),
		"1945":                                                  year("1945"),
		"custa 1000, ou 1024":                                   "",
		"in the year 1000":                                      year("1000"),
		"Em 1000 nasceu o reino":                                year("1000"),
		"The files of the police: in 1911 the directory was in Lisbon.": year("1911"),
	} {
		if got := times(line); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

// A sentence with a date gives the same dates in a text about programs, at any place. Numbers that
// are not years add nothing.
func TestTechnicalKeepsDates(t *testing.T) {
	dated := []string{"It was changed on 14 October 2001.", "It was changed in 1998.", "It is there since May 2003.",
		"Release date: 2022-10-13"}
	plain := []string{"A limit of 1000 is set.", "See RFC 1034 and 1035.", "Copyright 2001 Frob Inc.",
		"Use 2048 as the default."}
	rapid.Check(t, func(t *rapid.T) {
		said := rapid.SampledFrom(dated).Draw(t, "dated")
		var lines []string
		for range rapid.IntRange(0, 6).Draw(t, "lines") {
			lines = append(lines, rapid.SampledFrom(plain).Draw(t, "plain"))
		}
		lines = slices.Insert(lines, rapid.IntRange(0, len(lines)).Draw(t, "at"), said)
		if got, want := times(manual+strings.Join(lines, "\n")), times(said); got != want {
			t.Fatalf("%q: %q, want %q", lines, got, want)
		}
	})
}
