package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/echo-node/echo-node/partition/geo/atlas"
)

// write makes a compressed file of these lines, and returns its name.
func write(t *testing.T, lines ...string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(strings.Join(lines, "\n") + "\n")); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "in.gz")
	if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// The output has the places, with their names and without small codes. The same input gives the
// same output.
func TestRun(t *testing.T) {
	in := write(t,
		"Portugal\tPRT|Portogallo\tPT\t\t38.7\t-9.1\t10000000\tPCLI\t\t",
		"Lisbon\tLisboa|LIS|Lisbon|Lisabon\tPT\tLisbon\t38.71667\t-9.13333\t517802\tPPLC\tLisbon\t2267057",
		"Bragança\tBGC|Bragance\tPT\tBragança\t41.8\t-6.7\t34375\tPPLA\tBragança Municipality\t1",
		"Almeida\t\tPT\tGuarda\t\t\t0\tADM2\tAlmeida\t")
	out := filepath.Join(t.TempDir(), "out.gaz")
	if err := run(in, out); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	table, err := atlas.Decode(data)
	if err != nil || table.Len() != 4 {
		t.Fatalf("%d places, %v", table.Len(), err)
	}
	for name, want := range map[string]atlas.Place{
		"lisboa": {Name: "Lisbon", Country: "PT", Admin1: "Lisbon", Admin2: "Lisbon", Lat: 38.717, Lon: -9.133,
			Located: true, Population: 520000, Rank: atlas.Capital},
		"LIS": {Name: "Lisbon", Country: "PT", Admin1: "Lisbon", Admin2: "Lisbon", Lat: 38.717, Lon: -9.133,
			Located: true, Population: 520000, Rank: atlas.Capital},
		"bragance": {Name: "Bragança", Country: "PT", Admin1: "Bragança", Admin2: "Bragança", Lat: 41.8, Lon: -6.7,
			Located: true, Population: 34000, Rank: atlas.Seat},
		"almeida": {Name: "Almeida", Country: "PT", Admin1: "Guarda", Admin2: "Almeida", Rank: atlas.Municipality},
		"portogallo": {Name: "Portugal", Country: "PT", Lat: 38.7, Lon: -9.1, Located: true, Population: 10000000,
			Rank: atlas.Country},
	} {
		found := table.Find(name)
		if len(found) != 1 || table.Place(found[0].Number) != want {
			t.Errorf("%q finds %+v, want %+v", name, found, want)
		}
	}
	if table.Find("BGC") != nil {
		t.Error("the code of a small airport is a name")
	}
	again := filepath.Join(t.TempDir(), "again.gaz")
	if err := run(in, again); err != nil {
		t.Fatal(err)
	}
	if other, err := os.ReadFile(again); err != nil || !bytes.Equal(other, data) {
		t.Errorf("equal input gives other output: %v", err)
	}
}

// A faulty input is an error.
func TestRunFails(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.gaz")
	for name, in := range map[string]string{
		"missing":    filepath.Join(t.TempDir(), "none"),
		"columns":    write(t, "Lisbon\tx"),
		"population": write(t, "Lisbon\t\tPT\tLisbon\t1\t2\tmany\tPPLC\t\t"),
		"latitude":   write(t, "Lisbon\t\tPT\tLisbon\tnorth\t2\t1\tPPLC\t\t"),
		"longitude":  write(t, "Lisbon\t\tPT\tLisbon\t1\twest\t1\tPPLC\t\t"),
		"country":    write(t, "Lisbon\t\tPRT\tLisbon\t1\t2\t1\tPPLC\t\t"),
	} {
		if err := run(in, out); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, []byte("no gzip"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(plain, out); err == nil {
		t.Error("no gzip: no error")
	}
}
