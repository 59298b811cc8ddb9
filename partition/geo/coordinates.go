package geo

import (
	"math"
	"regexp"
	"strconv"
	"strings"
)

// The forms of written coordinates, in the order in which they are tried. Two whole numbers are
// no coordinates, because a text has many of them.
var (
	// 38.72, -9.14, as old clients wrote it after iPhone: or ÜT:
	decimals = regexp.MustCompile(`(?:^|[^0-9.])([-+]?[0-9]{1,2}\.[0-9]{1,15})°?\s*[,;/]\s*([-+]?[0-9]{1,3}\.[0-9]{1,15})(?:[^0-9.]|$)`)
	// Lat: 38.72 Lon: -9.14
	labelled = regexp.MustCompile(`(?i)\blat(?:itude)?[\s:=]{1,3}([-+]?[0-9]{1,2}\.[0-9]{1,15})°?[\s,;/]{1,3}lon(?:g|gitude)?[\s:=]{1,3}([-+]?[0-9]{1,3}\.[0-9]{1,15})`)
	// 38,7223 -9,1393, with the Portuguese decimal comma
	commas = regexp.MustCompile(`(?:^|[^0-9.,])([-+]?[0-9]{1,2},[0-9]{2,15})°?\s*[;/\s]\s*([-+]?[0-9]{1,3},[0-9]{2,15})(?:[^0-9.,]|$)`)
	// 38.72° N, 9.14° W; 38°43'12" N 9°08' O (oeste)
	compass = regexp.MustCompile(`(?i)(?:^|[^0-9.,])` + angle + `([NS])[\s,;/]{0,3}` + angle + `([EWOL])(?:[^\pL]|$)`)
	// N 38° 43' W 9° 08'
	compassFirst = regexp.MustCompile(`(?i)(?:^|[^\pL])([NS])\s?` + angle + `[\s,;/]{0,3}([EWOL])\s?` + angle)
)

// angle matches degrees, with optional minutes and seconds.
const angle = `([0-9]{1,3}(?:[.,][0-9]{1,15})?)\s?(?:[°º˚d]\s?(?:([0-9]{1,2}(?:[.,][0-9]{1,9})?)\s?['’′]\s?(?:([0-9]{1,2}(?:[.,][0-9]{1,9})?)\s?(?:["”″]|'')\s?)?)?)?`

// findCoordinates finds a place written in degrees.
func findCoordinates(s string) (lat, lon float64, ok bool) {
	s = strings.ToValidUTF8(s[:min(len(s), MaxText)], " ")
	if !strings.ContainsAny(s, "0123456789") {
		return 0, 0, false
	}
	s = strings.ReplaceAll(s, "\u2212", "-")
	if m := decimals.FindStringSubmatch(s); m != nil {
		return valid(degrees(m[1]), degrees(m[2]))
	}
	if m := labelled.FindStringSubmatch(s); m != nil {
		return valid(degrees(m[1]), degrees(m[2]))
	}
	if m := commas.FindStringSubmatch(s); m != nil {
		return valid(degrees(m[1]), degrees(m[2]))
	}
	if m := compass.FindStringSubmatch(s); m != nil {
		return onCompass(m[1:4], m[4], m[5:8], m[8])
	}
	if m := compassFirst.FindStringSubmatch(s); m != nil {
		return onCompass(m[2:5], m[1], m[6:9], m[5])
	}
	return 0, 0, false
}

// onCompass returns a place from its angles and the letters of its directions. An angle in
// whole degrees is too imprecise for a place.
func onCompass(north []string, ns string, east []string, ew string) (lat, lon float64, ok bool) {
	if fine := func(a []string) bool { return strings.ContainsAny(a[0], ".,") || a[1] != "" }; !fine(north) ||
		!fine(east) {
		return 0, 0, false
	}
	lat, lon = sum(north), sum(east)
	if strings.EqualFold(ns, "s") {
		lat = -lat
	}
	if strings.EqualFold(ew, "w") || strings.EqualFold(ew, "o") {
		lon = -lon
	}
	return valid(lat, lon)
}

// sum converts degrees, minutes and seconds into degrees.
func sum(a []string) float64 {
	total := 0.0
	for i, unit := range []float64{1, 60, 3600} {
		if a[i] != "" {
			total += degrees(a[i]) / unit
		}
	}
	return total
}

// degrees parses a number with a point or a comma. It returns NaN for anything else.
func degrees(s string) float64 {
	v, err := strconv.ParseFloat(strings.Replace(s, ",", ".", 1), 64)
	if err != nil {
		return math.NaN()
	}
	return v
}

// valid returns its arguments, and whether they are a point on the earth. NaN is none.
func valid(lat, lon float64) (float64, float64, bool) {
	return lat, lon, lat >= -90 && lat <= 90 && lon >= -180 && lon <= 180
}
