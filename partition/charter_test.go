package partition

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// geoCharter returns a valid charter in geo mode.
func geoCharter() Charter {
	c := DefaultCharter("geo", "12D3KooWfounder")
	c.Mode, c.CellLevel, c.Gazetteer = ModeGeo, 7, "0123"
	return c
}

// The default charter is valid, survives JSON, and does not contradict itself.
func TestDefaultCharter(t *testing.T) {
	for _, c := range []Charter{DefaultCharter("demo", "12D3KooWfounder"), geoCharter()} {
		if err := c.CheckLocal(); err != nil {
			t.Error(err)
		}
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var back Charter
		if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(back, c) ||
			back.Digest() != c.Digest() {
			t.Errorf("%s comes back as %+v, %v", text, back, err)
		}
		if d := c.Digest(); len(d) != 32 || strings.Trim(d, "0123456789abcdef") != "" {
			t.Errorf("digest %q", d)
		}
		if diff := c.Contradicts(back); diff != nil {
			t.Errorf("a charter contradicts itself: %v", diff)
		}
	}
}

// The digest is part of the protocol prefix: it never changes for a charter.
func TestDigestGolden(t *testing.T) {
	c := DefaultCharter("demo", "founder")
	c.Suffixes = "fixed"
	if got, want := c.Digest(), "0de78c1f7feace17b6b0dc51bd50637b"; got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
}

// Validate reports all faults at once, in both modes.
func TestValidateReportsAllFaults(t *testing.T) {
	c := Charter{V: 2, Name: "No Good", Founder: "a b", Mode: "round", SliceBits: 21, Replicas: 8, ZoneMax: -1,
		Fanout: map[string]int{"mastodon": -1, "myspace": 1}}
	err := c.Validate()
	if err == nil {
		t.Fatal("no error")
	}
	for _, word := range []string{"v is 2", "name", "founder", "profile", "wire", "mode", "slicebits 21", "replicas 8",
		"zonemax -1", "suffixes",
		"fanout of bluesky is missing", "fanout of twitter is missing", "fanout -1", "unknown service \"myspace\""} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("no %q in %q", word, err)
		}
	}
	hash := DefaultCharter("x", "y")
	hash.CellLevel, hash.Gazetteer = 7, "x"
	geo := geoCharter()
	geo.CellLevel, geo.Gazetteer = 13, ""
	for _, c := range []Charter{hash, geo} {
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "celllevel") ||
			!strings.Contains(err.Error(), "gazetteer") {
			t.Errorf("%v: %v", c.Mode, err)
		}
	}
}

// CheckLocal names each version that differs, and refuses an invalid charter.
func TestCheckLocal(t *testing.T) {
	c := DefaultCharter("x", "y")
	c.Profile, c.Wire, c.Suffixes = 2, 3, "other"
	err := c.CheckLocal()
	if err == nil {
		t.Fatal("no error")
	}
	for _, word := range []string{"profile 2", "wire version 3", "list other"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("no %q in %q", word, err)
		}
	}
	c.Replicas = 0
	if err := c.CheckLocal(); err == nil || !strings.Contains(err.Error(), "replicas") {
		t.Errorf("invalid charter: %v", err)
	}
}

// Every field counts: changing any field changes the digest, and Contradicts names it.
func TestContradicts(t *testing.T) {
	base := geoCharter()
	seen := map[string]bool{base.Digest(): true}
	v := reflect.TypeOf(base)
	for i := range v.NumField() {
		other := base
		f := reflect.ValueOf(&other).Elem().Field(i)
		switch f.Kind() {
		case reflect.Int:
			f.SetInt(f.Int() + 1)
		case reflect.String:
			f.SetString(f.String() + "x")
		case reflect.Bool:
			f.SetBool(!f.Bool())
		case reflect.Map:
			f.Set(reflect.ValueOf(map[string]int{"mastodon": 9}))
		}
		name := strings.Split(v.Field(i).Tag.Get("json"), ",")[0]
		diff := base.Contradicts(other)
		if len(diff) != 1 || !strings.HasPrefix(diff[0], name+" is ") {
			t.Errorf("field %s: %q", name, diff)
		}
		if seen[other.Digest()] {
			t.Errorf("field %s does not change the digest", name)
		}
		seen[other.Digest()] = true
	}
}

// Slices lists all hash slices in order, and each Key is in one of them.
func TestSlicesInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := DefaultCharter("x", "y")
		c.SliceBits = rapid.IntRange(1, 12).Draw(t, "bits")
		all := c.Slices()
		if len(all) != 1<<c.SliceBits || !slices.IsSorted(all) || len(slices.Compact(slices.Clone(all))) != len(all) {
			t.Fatalf("%d slices of %d bits", len(all), c.SliceBits)
		}
		for i, s := range all {
			if !s.Valid() || s.Bits() != c.SliceBits || s.Prefix() != uint64(i) {
				t.Fatalf("slice %d is %v", i, s)
			}
		}
		if k, err := ParseKey(keyGenerator().Draw(t, "key")); err == nil && !slices.Contains(all, c.Slice(k)) {
			t.Fatalf("%q falls outside", k)
		}
	})
}

// A charter comes from another peer before it is checked, so nothing may panic.
func TestCharterHostile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Charter{Name: rapid.String().Draw(t, "name"), Mode: Mode(rapid.String().Draw(t, "mode")),
			SliceBits: rapid.Int().Draw(t, "bits"),
			CellLevel: rapid.Int().Draw(t, "level"), Replicas: rapid.Int().Draw(t, "replicas"),
			Fanout: rapid.MapOf(rapid.String(), rapid.Int()).Draw(t, "fanout")}
		if c.Validate() == nil || c.CheckLocal() == nil {
			t.Fatal("nonsense is valid")
		}
		_, _ = c.Digest(), c.Contradicts(DefaultCharter("x", "y"))
	})
}
