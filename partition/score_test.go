package partition

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/golang/geo/s2"
)

// negLog2 agrees with the logarithm of package math, and floorLog is never above it.
func TestNegLog2(t *testing.T) {
	worst := 0.0
	check := func(h uint64) {
		u := new(big.Float).SetInt(new(big.Int).Add(new(big.Int).SetUint64(h), big.NewInt(1)))
		// log2 through log1p near 1, where a small result needs the digits.
		var want float64
		if h >= 1<<63 {
			rest := float64(^h) / (1 << 63) / 2
			want = -math.Log1p(-rest) / math.Ln2
		} else {
			f, _ := u.Float64()
			want = 64 - math.Log2(f)
		}
		got := float64(negLog2(h)) / (1 << logFraction)
		worst = max(worst, math.Abs(got-want)/max(want, 1))
		if math.Abs(got-want) > 1e-14*max(want, 1) {
			t.Fatalf("negLog2(%#x) = %v, want %v", h, got, want)
		}
		if floorLog(h) > negLog2(h) {
			t.Fatalf("floorLog(%#x) = %d is above negLog2 = %d", h, floorLog(h), negLog2(h))
		}
	}
	for _, h := range []uint64{0, 1, 2, 3, 1 << 31, 1<<63 - 1, 1 << 63, 1<<63 + 1, math.MaxUint64, math.MaxUint64 - 1,
		math.MaxUint64 - 1<<20} {
		check(h)
	}
	for i := range 64 {
		check(1<<i - 1) // exact powers of two
		if got := negLog2(1<<i - 1); got != uint64(64-i)<<logFraction {
			t.Errorf("negLog2(2^%d - 1) = %d, want %d", i, got, uint64(64-i)<<logFraction)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		h := r.Uint64()
		check(h)
		check(h >> (h & 63))
		check(^(h >> (h & 63)))
	}
	t.Logf("worst error %.3g", worst)
}

// decay agrees with its formula.
func TestDecay(t *testing.T) {
	want := 2 * math.Pow(6371.0088/500, 2) * 65536
	if math.Abs(decay-want) > 1 {
		t.Errorf("decay is %d, want %.1f", decay, want)
	}
}

// Centres of cells agree with the S2 library, to 10^-8 of the radius.
func TestCellCentre(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 20_000 {
		leaf := s2.CellIDFromLatLng(s2.LatLngFromDegrees(r.Float64()*180-90, r.Float64()*360-180))
		cell := leaf.Parent(r.IntN(31))
		got, want := cellCentre(Slice(cell)), cell.Point()
		for _, d := range []float64{float64(got.x)/unit - want.X, float64(got.y)/unit - want.Y,
			float64(got.z)/unit - want.Z} {
			if math.Abs(d) > 1e-8 {
				t.Fatalf("cellCentre(%v) = %v, want %v", cell, got, want)
			}
		}
	}
}

// Places agree with the S2 library, to 10^-8 of the radius. Invalid points are no place.
func TestPointVector(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	check := func(lat, lon float64) {
		got := pointVector(Point{lat, lon})
		want := s2.PointFromLatLng(s2.LatLngFromDegrees(math.Round(lat*1e4)/1e4, math.Round(lon*1e4)/1e4))
		for _, d := range []float64{float64(got.x)/unit - want.X, float64(got.y)/unit - want.Y,
			float64(got.z)/unit - want.Z} {
			if math.Abs(d) > 1e-8 {
				t.Fatalf("pointVector(%v, %v) = %v, want %v", lat, lon, got, want)
			}
		}
	}
	for _, lat := range []float64{-90, -45, 0, 45, 90} {
		for _, lon := range []float64{-180, -90, 0, 90, 180} {
			check(lat, lon)
		}
	}
	for range 20_000 {
		check(r.Float64()*180-90, r.Float64()*360-180)
	}
	for _, p := range []Point{{math.NaN(), 0}, {0, math.Inf(1)}, {91, 0}, {0, -181}} {
		if v := pointVector(p); v != (vector{}) {
			t.Errorf("pointVector(%v) = %v, want no place", p, v)
		}
	}
}
