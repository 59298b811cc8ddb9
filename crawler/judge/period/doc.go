// Package period says which time a text talks about, and which links of a page
// lead to pages that talk about a wanted time.
//
// It follows Pereira, "Descarga Temporal de Páginas Web" (Universidade do Minho,
// 2013; ECIR 2014), a crawler that follows only the links in passages whose dates
// lie in an interval. The lab redoes its experiment (cmd/echo-lab/temporal).
//
// # Tag
//
// Tag finds the time expressions of Portuguese (both spellings) and English text
// and resolves them to days. The words are in lexicon.txt, the patterns in
// rules.txt; the code knows only what a pattern's action means. An Expression has
// a Form (date, time, interval, duration, frequency), a Kind (how it refers to
// time: explicit, implicit by a name, deictic to the day of writing, anaphoric to
// a date before it in the text, vague) and, when resolved, a first and a last
// day, both inclusive. Conventions:
//
//   - A season is the whole months that it touches, on the northern half of the
//     Earth: spring 1 March to 30 June, summer 1 June to 30 September, autumn 1
//     September to 31 December, winter 1 December to 31 March of the next year.
//   - "início de X", "meados de X", "fim de X" are X.
//   - Day before month: 06/05/2010 is the sixth of May, unless the month would be
//     above 12.
//   - A decade is 1940 to 1949, a century 1801 to 1900, the first century before
//     Christ -99 to 0 in astronomical years.
//   - A month or a day without a year belongs to the year of the date before it in
//     the same paragraph, else to the year of the day of writing.
//   - A weekday is the latest one that is not after the day of writing; with
//     "próxima" the first one after it, with "passada" the last one before it, with
//     "esta" that of the same week (Monday to Sunday).
//   - "há dois anos" is that year, "há dois meses" that month, "há duas semanas"
//     that day.
//   - Four digits alone are a year, unless they are counted, numbered or a year of copyright.
//     In a text about programs, which its words tell, something has to say that they are.
//   - "Last updated on X" is of the page itself: Own says so, and Content leaves it out.
//   - Vague expressions get generous bounds; Kind says so.
//   - What remains unknown in a Value is written X: 2000-06-XX, 194X-XX-XX.
//
// # Choosing links
//
// Segments cuts a page, Scope.Share says how much of a segment is in scope, and
// Valid is the paper's rule. Scorer is ours: it weighs more evidence and leaves no link
// out. Promises is what it says of all links of a page.
//
// All functions are pure and safe for concurrent use.
package period
