package duplicates

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/echo-node/echo-node/partition/racetest"
)

type position struct{ i, j int }

func byIndex(fingerprints []uint64, k int) []position {
	var out []position
	Near(fingerprints, k, func(i, j int) { out = append(out, position{i, j}) })
	sortPositions(out)
	return out
}

func byForce(fingerprints []uint64, k int) []position {
	var out []position
	for i, f := range fingerprints {
		for j := i + 1; j < len(fingerprints); j++ {
			if Distance(f, fingerprints[j]) <= k {
				out = append(out, position{i, j})
			}
		}
	}
	sortPositions(out)
	return out
}

func sortPositions(p []position) {
	slices.SortFunc(p, func(x, y position) int {
		if x.i != y.i {
			return x.i - y.i
		}
		return x.j - y.j
	})
}

// flip changes n different bits of f.
func flip(rng *rand.Rand, f uint64, n int) uint64 {
	for _, bit := range rng.Perm(64)[:n] {
		f ^= 1 << bit
	}
	return f
}

// TestNearIsExact compares the index with brute force on 100,000 fingerprints with planted
// neighbours at 0 to 5 bits: no pair is missing or extra. By default the brute force uses the rows
// of every tenth fingerprint. With ECHO_EXHAUSTIVE set it uses all.
func TestNearIsExact(t *testing.T) {
	const n = 100_000
	rng := newRand(3)
	fingerprints := make([]uint64, 0, n+2)
	for len(fingerprints) < n {
		f := rng.Uint64()
		fingerprints = append(fingerprints, f)
		if len(fingerprints)%10 == 0 {
			fingerprints = append(fingerprints, flip(rng, f, rng.IntN(6)), flip(rng, f, rng.IntN(6)))
		}
	}
	fingerprints = fingerprints[:n]
	rng.Shuffle(n, func(i, j int) { fingerprints[i], fingerprints[j] = fingerprints[j], fingerprints[i] })
	step := 10
	if os.Getenv("ECHO_EXHAUSTIVE") != "" {
		step = 1
	}
	if racetest.Small(t) {
		step = 500
	}
	found := byIndex(fingerprints, 3)
	got := make(map[position]bool)
	for _, p := range found {
		if got[p] || Distance(fingerprints[p.i], fingerprints[p.j]) > 3 {
			t.Fatalf("%v is an extra", p)
		}
		got[p] = true
	}
	misses, checked := 0, 0
	for i := 0; i < n; i += step {
		for j, g := range fingerprints {
			if Distance(fingerprints[i], g) <= 3 && i != j {
				checked++
				if !got[position{min(i, j), max(i, j)}] {
					misses++
				}
			}
		}
	}
	if misses > 0 || checked < len(found)/step {
		t.Fatalf("%d misses of %d", misses, checked)
	}
	t.Logf("%d pairs among %d fingerprints; %d looked for by brute force, 0 misses, 0 extras", len(found), n, checked)
}

// Crowded buckets are divided again. The result stays exact, for every k.
func TestNearCrowded(t *testing.T) {
	for _, k := range []int{0, 1, 3, 7, 10} {
		t.Run(fmt.Sprint(k), func(t *testing.T) {
			rng := newRand(4)
			var fingerprints []uint64
			for range 4000 / (k + 2) * 2 { // 56 bits are equal, so every bucket is crowded
				fingerprints = append(fingerprints, 0xdeadbeef00000000|uint64(rng.IntN(1<<24))<<3)
			}
			if got, want := byIndex(fingerprints, k), byForce(fingerprints, k); !slices.Equal(got, want) {
				t.Fatalf("index found %d pairs, brute force %d", len(got), len(want))
			}
		})
	}
}

func TestNearProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.IntRange(0, 12).Draw(t, "k")
		seeds := rapid.SliceOfN(rapid.Uint64(), 0, 20).Draw(t, "seeds")
		rng := newRand(rapid.Uint64().Draw(t, "seed"))
		var fingerprints []uint64
		for _, f := range seeds {
			fingerprints = append(fingerprints, f, flip(rng, f, rng.IntN(15)))
		}
		if got, want := byIndex(fingerprints, k), byForce(fingerprints, k); !slices.Equal(got, want) {
			t.Fatalf("index %v, brute force %v", got, want)
		}
	})
}

func TestNearBoundary(t *testing.T) {
	f := uint64(0x0123456789abcdef)
	for n := range 8 {
		g := flip(newRand(uint64(n)), f, n)
		if got := len(byIndex([]uint64{f, g}, 3)) == 1; got != (n <= 3) {
			t.Errorf("distance %d: near is %v", n, got)
		}
	}
}
