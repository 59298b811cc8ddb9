package churn

import (
	"math"

	"github.com/echo-node/echo-node/crawler/crawltest"
	"github.com/echo-node/echo-node/partition"
)

// places returns the locations of sites and peers, peers at the first ones. The first eight are
// far apart.
func places() []crawltest.Place {
	return []crawltest.Place{
		{Name: "Lisboa, Portugal", Lat: 38.72, Lon: -9.14}, {Name: "São Paulo, Brasil", Lat: -23.55, Lon: -46.63},
		{Name: "Luanda, Angola", Lat: -8.84, Lon: 13.23},
		{Name: "Maputo, Moçambique", Lat: -25.97, Lon: 32.57}, {Name: "Madrid, España", Lat: 40.42, Lon: -3.70},
		{Name: "London, United Kingdom", Lat: 51.51, Lon: -0.13},
		{Name: "New York, United States", Lat: 40.71, Lon: -74.01},
		{Name: "Buenos Aires, Argentina", Lat: -34.61, Lon: -58.38},
		{Name: "Ciudad de México, México", Lat: 19.43, Lon: -99.13},
		{Name: "Porto, Portugal", Lat: 41.15, Lon: -8.61}, {Name: "Rio de Janeiro, Brasil", Lat: -22.91, Lon: -43.17},
		{Name: "Barcelona, España", Lat: 41.39, Lon: 2.16},
		{Name: "Manchester, United Kingdom", Lat: 53.48, Lon: -2.24},
		{Name: "Chicago, United States", Lat: 41.88, Lon: -87.63},
		{Name: "Coimbra, Portugal", Lat: 40.21, Lon: -8.43},
		{Name: "Recife, Brasil", Lat: -8.05, Lon: -34.88}, {Name: "Sevilla, España", Lat: 37.39, Lon: -5.98},
		{Name: "Córdoba, Argentina", Lat: -31.42, Lon: -64.18},
		{Name: "Benguela, Angola", Lat: -12.58, Lon: 13.41}, {Name: "Beira, Moçambique", Lat: -19.84, Lon: 34.84},
		{Name: "Faro, Portugal", Lat: 37.02, Lon: -7.93},
		{Name: "Guadalajara, México", Lat: 20.67, Lon: -103.35}, {Name: "Dublin, Ireland", Lat: 53.35, Lon: -6.26},
	}
}

// placeOfPeer returns the location of the i-th peer.
func placeOfPeer(i int) *partition.Point {
	p := places()[i%len(places())]
	return &partition.Point{Lat: p.Lat, Lon: p.Lon}
}

// km returns the length of the great circle.
func km(lat1, lon1, lat2, lon2 float64) float64 {
	const earth, degree = 6371, math.Pi / 180
	dLat, dLon := (lat2-lat1)*degree, (lon2-lon1)*degree
	a := math.Pow(math.Sin(dLat/2), 2) + math.Cos(lat1*degree)*math.Cos(lat2*degree)*math.Pow(math.Sin(dLon/2), 2)
	return 2 * earth * math.Asin(min(1, math.Sqrt(a)))
}
