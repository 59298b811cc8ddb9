// Package racetest has the differences of tests under the race detector, where everything takes
// about twenty times as long.
package racetest

import (
	"flag"
	"os"
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"
)

// Main is a TestMain for a package with expensive property tests (pgregory.net/rapid). With the
// race detector they try checks cases, unless the flag -rapid.checks gives a number. Without it
// they try all.
func Main(m *testing.M, checks string) {
	flag.Parse()
	given := !Enabled
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if !given {
		if err := flag.Set("rapid.checks", checks); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// Skip ends a test that takes minutes under the race detector and gives it nothing new to
// check. .ci/run runs every test that calls Skip without the detector.
func Skip(t testing.TB) {
	t.Helper()
	if Enabled {
		t.Skip("minutes under the race detector; without it, it is run in full")
	}
}

// Small reports whether a test must try a smaller case, which is so under the race detector.
// .ci/run runs every test that calls Small without the detector, too.
func Small(t testing.TB) bool {
	t.Helper()
	return Enabled
}

// Fewer returns n, or a third of n under the race detector: see Small.
func Fewer(t testing.TB, n int) int {
	if Small(t) {
		return n / 3
	}
	return n
}

// Flips returns how many bytes a test of damage changes: n, or small under the race detector
// (see Small). The variable ECHO_FLIPS overrides both.
func Flips(t testing.TB, n, small int) int {
	t.Helper()
	if Small(t) {
		n = small
	}
	if given, err := strconv.Atoi(os.Getenv("ECHO_FLIPS")); err == nil {
		return given
	}
	return n
}

// InFakeTime is synctest.Test on OneProcessor. A test that calls it must not be parallel.
func InFakeTime(t *testing.T, f func(*testing.T)) {
	OneProcessor(t)
	synctest.Test(t, f)
}

// OneProcessor runs the rest of a test on one processor under the race detector. The timers of
// a synctest bubble share one context of the detector. Two threads that each find a due timer
// use it at the same time (Go 1.26, runtime.(*timer).maybeRunChan), and the detector crashes.
func OneProcessor(t testing.TB) {
	if Enabled {
		had := runtime.GOMAXPROCS(1)
		t.Cleanup(func() { runtime.GOMAXPROCS(had) })
	}
}
