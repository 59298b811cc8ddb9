package geo

import "testing"

// BenchmarkRestart does what a restarted peer of a geographic swarm does before it can place
// anything.
func BenchmarkRestart(b *testing.B) {
	b.ReportAllocs()
	for range b.N {
		g, err := Open()
		if err != nil {
			b.Fatal(err)
		}
		_ = g.Digest()
		NewJudge(g, CellLevel)
	}
}
