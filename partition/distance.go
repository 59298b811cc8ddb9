package partition

import (
	"math"
	"math/bits"
)

// Distances between cells and members are in integers for the same reason as in score.go. A
// place is a unit vector with components in 2^-30. Its error is about 10^-8 of the earth's
// radius, far below the 10 m to which coordinates are rounded first.

// vector is a point on the unit sphere in 2^-30. The zero vector is no place.
type vector struct{ x, y, z int64 }

// unit is 1 in 2^-30.
const unit = 1 << 30

// pointVector returns the vector of p, with its degrees rounded to 10^-4. An invalid p is no
// place.
func pointVector(p Point) vector {
	if !p.Valid() {
		return vector{}
	}
	// One multiplication and a rounding: the compiler can fuse nothing here.
	sinLat, cosLat := sincos(int64(math.Round(p.Lat * 1e4)))
	sinLon, cosLon := sincos(int64(math.Round(p.Lon * 1e4)))
	return vector{cosLat * cosLon >> 30, cosLat * sinLon >> 30, sinLat}
}

// placeOf returns the place that m claims.
func placeOf(m *Member) vector {
	if m.Location == nil {
		return vector{}
	}
	return pointVector(*m.Location)
}

// sincos takes 10^-4 degrees in [-180°, 180°] and returns sine and cosine in 2^-30.
func sincos(a int64) (sin, cos int64) {
	const right = 90_0000
	negative := a < 0
	if negative {
		a = -a
	}
	obtuse := a > right
	if obtuse {
		a = 2*right - a
	}
	sin, cos = taylorSin(a), taylorSin(right-a)
	if negative {
		sin = -sin
	}
	if obtuse {
		cos = -cos
	}
	return sin, cos
}

// taylorSin returns the sine of 0° to 90° by its series, in 2^-30.
func taylorSin(a int64) int64 {
	// pi in 2^-60; a/1800000 of it is the angle in radians.
	const pi = 0x3243f6a8885a308d
	hi, lo := bits.Mul64(uint64(a), pi)
	x, _ := bits.Div64(hi, lo, 180_0000) // radians in 2^-60, below 2
	mul := func(a, b uint64) uint64 {
		hi, lo := bits.Mul64(a, b)
		return hi<<4 | lo>>60
	}
	square := mul(x, x)
	var sum int64
	term := x
	for n := uint64(1); term > 0; n += 2 {
		if n%4 == 1 {
			sum += int64(term)
		} else {
			sum -= int64(term)
		}
		term = mul(term, square) / ((n + 1) * (n + 2))
	}
	return (sum + 1<<29) >> 30
}

// cellCentre returns the centre of an S2 cell. It reverses the Hilbert curve, then applies S2's
// quadratic projection, as the S2 library does in floating point (github.com/google/s2geometry,
// s2coords.h).
func cellCentre(s Slice) vector {
	face, i, j := cellFaceIJ(s)
	u, v := stToUV(i), stToUV(j)
	var x, y, z int64
	switch face {
	case 0:
		x, y, z = unit, u, v
	case 1:
		x, y, z = -u, unit, v
	case 2:
		x, y, z = -u, -v, unit
	case 3:
		x, y, z = -unit, -v, -u
	case 4:
		x, y, z = v, -unit, -u
	default:
		x, y, z = v, u, -unit
	}
	length := squareRoot(uint64(x*x + y*y + z*z)) // at most sqrt(3) * 2^30
	return vector{x * unit / length, y * unit / length, z * unit / length}
}

// stToUV takes the centre of a cell's edge in 2^-31, 0 to 2^31, and projects it to [-1, 1] in
// 2^-30.
func stToUV(t int64) int64 {
	// u = (4s²-1)/3 for s >= 1/2, else (1-4(1-s)²)/3; 4s² is t² / 2^60.
	const half = 1 << 30
	if t >= half {
		return (t*t/half - unit) / 3
	}
	t = 2*half - t
	return (unit - t*t/half) / 3
}

// cellFaceIJ reverses the Hilbert curve. It returns the face, and the centre of the cell along
// both axes in 2^-31.
func cellFaceIJ(s Slice) (face int, i, j int64) {
	const swap, invert = 1, 2
	// The quadrant by orientation and position on the curve, and how the orientation changes
	// there.
	posToIJ := [4][4]int64{{0, 1, 3, 2}, {0, 2, 3, 1}, {3, 2, 0, 1}, {3, 1, 0, 2}}
	posToOrientation := [4]int{swap, 0, 0, invert + swap}

	face = int(s >> 61)
	orientation := face & swap
	level := (60 - bits.TrailingZeros64(uint64(s))) / 2
	for l := range level {
		pos := uint64(s) >> (59 - 2*l) & 3
		ij := posToIJ[orientation][pos]
		i, j = i<<1|ij>>1, j<<1|ij&1
		orientation ^= posToOrientation[pos]
	}
	shift := 31 - level
	return face, i<<shift + 1<<shift>>1, j<<shift + 1<<shift>>1
}

// squareRoot returns the root, rounded down (Newton's method).
func squareRoot(n uint64) int64 {
	if n == 0 {
		return 0
	}
	x := uint64(1) << ((bits.Len64(n) + 1) / 2)
	for {
		y := (x + n/x) / 2
		if y >= x {
			return int64(x)
		}
		x = y
	}
}

// decay is (R / 500 km)² * 2 in 2^-16, where R = 6371.0088 km. Since d² = 2R²(1 - cos), (d / 500
// km)² is decay times 1 minus the cosine of the angle.
const decay = 21280720 // 324.7180… * 65536, rounded; see TestDecay

// geoWeight returns w / (1 + (d / 500 km)²)² in 2^-27 (for hash slices in 1).
func geoWeight(w uint64, member, cell vector) uint64 {
	cosine := int64(0) // no place: a quarter of the way round
	if member != (vector{}) {
		cosine = (member.x*cell.x + member.y*cell.y + member.z*cell.z) >> 30
	}
	apart := uint64(max(unit-cosine, 0)) // in 2^-30, 0 to 2
	x := 1<<16 + apart*decay>>30         // 1 + (d / 500 km)² in 2^-16, below 2^26
	x >>= 4                              // in 2^-12
	return max(w<<43/(x*x>>8), 1)        // x² in 2^-16; w below 2^21
}
