// Package racetest is what tests do otherwise under the race detector, where
// everything costs some twenty times as much.
package racetest

import (
	"flag"
	"os"
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"
)

// Main is a TestMain of a package whose property tests (pgregory.net/rapid) are
// dear: with the race detector they try that many cases, unless -rapid.checks
// says how many. All of them are tried without it.
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

// Skip ends a test that takes minutes under the race detector and has nothing of
// its own for it to see. .ci/run runs every test that calls it without the detector.
func Skip(t testing.TB) {
	t.Helper()
	if Enabled {
		t.Skip("minutes under the race detector; without it, it is run in full")
	}
}

// Small says whether a test is to try a smaller case, as it does under the race
// detector. .ci/run runs every test that calls it without the detector, too.
func Small(t testing.TB) bool {
	t.Helper()
	return Enabled
}

// Fewer is n of something, a third of it under the race detector: see Small.
func Fewer(t testing.TB, n int) int {
	if Small(t) {
		return n / 3
	}
	return n
}

// Flips is how many bytes a test of damage changes: n, or small under the race detector (see Small). ECHO_FLIPS
// says it instead.
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

// InFakeTime is synctest.Test on OneProcessor. A test that calls it is not
// parallel.
func InFakeTime(t *testing.T, f func(*testing.T)) {
	OneProcessor(t)
	synctest.Test(t, f)
}

// OneProcessor has the race detector see the rest of a test run on one
// processor: the timers of a bubble of synctest share one context of the
// detector, which two threads that each find a timer due use at once (Go 1.26,
// runtime.(*timer).maybeRunChan), and the detector dies of it.
func OneProcessor(t testing.TB) {
	if Enabled {
		had := runtime.GOMAXPROCS(1)
		t.Cleanup(func() { runtime.GOMAXPROCS(had) })
	}
}
