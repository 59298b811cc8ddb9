// Package period finds the times that a text talks about. It also finds which links of a page lead
// to pages that talk about a wanted time.
//
// It follows Pereira, "Descarga Temporal de Páginas Web" (Universidade do Minho, 2013; ECIR 2014).
// That crawler follows only the links in passages whose dates lie in an interval.
// cmd/echo-lab/temporal repeats its experiment.
//
// # Tag
//
// Tag finds the time expressions of Portuguese (both spellings) and English text and resolves them
// to days. The words are in lexicon.txt, the patterns in rules.txt. The code knows only what the
// action of a pattern means. An Expression has a Form (date, time, interval, duration, frequency).
// It has a Kind, which is how it refers to time: explicit, implicit by a name, deictic to the day
// of writing, anaphoric to a date before it in the text, or vague. When resolved, it has a first
// and a last day, both inclusive. Conventions:
//
//   - A season is all months that it touches, on the northern hemisphere: spring 1 March to 30
//     June, summer 1 June to 30 September, autumn 1 September to 31 December, winter 1 December to
//     31 March of the next year.
//   - "início de X", "meados de X", "fim de X" are X.
//   - Day before month: 06/05/2010 is 6 May, unless the month would be above 12.
//   - A decade is 1940 to 1949, a century 1801 to 1900. The first century before Christ is -99 to 0
//     in astronomical years.
//   - A month or a day without a year belongs to the year of the date before it in the same
//     paragraph. If there is none, it belongs to the year of the day of writing.
//   - A weekday is the latest one that is not after the day of writing. With "próxima" it is the
//     first one after it, with "passada" the last one before it, with "esta" that of the same week
//     (Monday to Sunday).
//   - "há dois anos" is that year, "há dois meses" that month, "há duas semanas" that day.
//   - Four digits alone are a year, unless they are a count, a serial number or a copyright year.
//     In a text about programs, which its words show, the text must also mark them as a year.
//   - "Last updated on X" is a date of the page itself: Own is set, and Content leaves it out.
//   - Vague expressions get generous limits; Kind is Vague.
//   - Unknown parts of a Value are written X: 2000-06-XX, 194X-XX-XX.
//
// # Choosing links
//
// Segments cuts a page, Scope.Share returns how much of a segment is in scope, and Valid is the
// paper's rule. Scorer is not from the paper: it weighs more evidence and leaves no link out.
// Promises returns its scores for all links of a page.
//
// All functions are pure and safe for concurrent use.
package period
