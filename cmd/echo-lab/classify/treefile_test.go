package classify

import (
	"bytes"
	"encoding/json"
	"testing"
)

func TestTreeFile(t *testing.T) {
	tree := Grow(pages(800, 1), AllFeatures())
	tree.Prune()
	file, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	again := Grow(pages(800, 1), AllFeatures())
	again.Prune()
	if twin, err := json.Marshal(again); err != nil || !bytes.Equal(file, twin) {
		t.Errorf("two trainings, two files (%v)", err)
	}
	var back Tree
	if err := json.Unmarshal(file, &back); err != nil {
		t.Fatal(err)
	}
	for _, e := range pages(500, 2) {
		if back.Classify(e.Vector) != tree.Classify(e.Vector) {
			t.Fatal("the tree that was read answers otherwise")
		}
	}
}

func FuzzTreeFile(f *testing.F) {
	f.Add([]byte(`{"version":1,"feature":[0,-1,-1],"cut":[1,0,0],"left":[1,0,0],"right":[2,0,0],"class":[0,1,2]}`))
	f.Add([]byte(`{"version":1,"feature":[0],"cut":[1],"left":[0],"right":[0],"class":[0]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var tree Tree
		if tree.UnmarshalJSON(b) == nil {
			tree.Classify(Vector{1, 2, 3})
			tree.Size()
		}
	})
}
