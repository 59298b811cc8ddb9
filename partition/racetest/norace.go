//go:build !race

package racetest

// Enabled reports that the race detector is off.
const Enabled = false
