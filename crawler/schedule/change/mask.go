package change

import "strings"

// Mask replaces the parts of text that change by themselves by one mark. These are times of day, "3
// minutes ago", counters ("1,234 views") and the time to generate a page. Session ids (long mixes
// of digits and letters) are masked too. The result has one blank between words. A date stays,
// because a new date is a change by the page's owner.
func Mask(text string) string {
	words := strings.Fields(text)
	lower := make([]string, len(words))
	for i, w := range words {
		lower[i] = strings.ToLower(strings.Trim(w, "()[]{}.,;:!?\"'“”«»|"))
	}
	for i, w := range lower {
		switch {
		case isClock(w), isSession(w):
			words[i] = mark
			if i+1 < len(words) && (lower[i+1] == "am" || lower[i+1] == "pm") {
				words[i+1] = mark
			}
		case !isNumber(w):
		case counts(lower, i), isAgo(lower, i), isElapsed(lower, i):
			words[i] = mark
		}
	}
	return strings.Join(words, " ")
}

// mark replaces a masked word. Stored texts do not contain a NUL.
const mark = "\x00"

// isClock reports whether w is a time: 9:05, 23:59:59, 21h30, 10:15am.
func isClock(w string) bool {
	w = strings.TrimSuffix(strings.TrimSuffix(w, "am"), "pm")
	fields := strings.FieldsFunc(w, func(r rune) bool { return r == ':' || r == 'h' })
	if len(fields) < 2 || len(fields) > 3 || len(w) > 12 {
		return false
	}
	for i, f := range fields {
		if len(f) > 2 || len(f) == 0 || !digits(f) || i > 0 && len(f) != 2 || f > "59" && len(f) == 2 {
			return false
		}
	}
	return true
}

// isSession reports whether w has at least 16 characters, and both letters and digits.
func isSession(w string) bool {
	if len(w) < 16 {
		return false
	}
	letters, figures := 0, 0
	for i := range len(w) {
		switch c := w[i]; {
		case c >= '0' && c <= '9':
			figures++
		case c >= 'a' && c <= 'z':
			letters++
		case c == '-' || c == '_' || c == '=':
		default:
			return false
		}
	}
	return letters >= 3 && figures >= 4
}

// isNumber reports whether w begins with a digit, and has only digits, points and commas. The
// letters k, m and s may follow ("1.2k").
func isNumber(w string) bool {
	if w == "" || w[0] < '0' || w[0] > '9' {
		return false
	}
	w = strings.TrimRight(w, "kms")
	for i := range len(w) {
		if c := w[i]; (c < '0' || c > '9') && c != '.' && c != ',' {
			return false
		}
	}
	return true
}

// counts reports whether the number at i counts views, visitors or the like, before or after it.
func counts(words []string, i int) bool {
	return i+1 < len(words) && isCounted(words[i+1]) || i > 0 && isCounted(words[i-1])
}

// isCounted reports whether w is a word for views or visitors, in the languages that are known
// here.
func isCounted(w string) bool {
	switch w {
	case "views", "view", "visits", "visitors", "hits", "reads", "downloads", "online", "likes", "shares", "clicks",
		"visualizações", "visitas", "visitantes", "leituras", "descargas", "acessos", "vistas", "lecturas",
		"vues", "visites", "visiteurs", "visualizzazioni", "visite":
		return true
	}
	return false
}

// isAgo matches: 3 minutes ago, há 3 minutos, hace 3 horas, il y a 3 heures, 3 ore fa.
func isAgo(words []string, i int) bool {
	if i+1 >= len(words) || !isUnit(words[i+1]) {
		return false
	}
	if i+2 < len(words) {
		switch words[i+2] {
		case "ago", "atrás", "fa":
			return true
		}
	}
	if i == 0 {
		return false
	}
	switch words[i-1] {
	case "há", "hai", "hace", "a", "updated", "depuis":
		return true
	}
	return false
}

// isElapsed matches: generated in 0.123 seconds.
func isElapsed(words []string, i int) bool {
	return i > 0 && i+1 < len(words) && (words[i-1] == "in" || words[i-1] == "em" || words[i-1] == "en") &&
		strings.ContainsAny(words[i], ".,") && isUnit(words[i+1])
}

// isUnit reports whether w is a unit of time.
func isUnit(w string) bool {
	switch w {
	case "s", "sec", "seconds", "second", "min", "mins", "minute", "minutes", "hour", "hours", "day", "days", "ms",
		"segundo", "segundos", "minuto", "minutos", "hora", "horas", "dia", "dias", "día", "días",
		"seconde", "secondes", "heure", "heures", "jour", "jours", "secondi", "minuti", "ora", "ore", "giorni":
		return true
	}
	return false
}

// digits reports whether s has only ASCII digits.
func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}
