package classify

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// treeVersion is the version of a stored tree.
const treeVersion = 1

// maxNodes limits a stored tree: the dissertation's had 1395 before pruning.
const maxNodes = 1 << 20

// stored is a tree as JSON: parallel lists with one entry per node, the root first. A leaf's
// feature is -1, and its cut and children are 0. Feature numbers follow FeatureNames.
type stored struct {
	Version int       `json:"version"`
	Feature []int     `json:"feature"`
	Cut     []float64 `json:"cut"`
	Left    []int32   `json:"left"`
	Right   []int32   `json:"right"`
	Class   []int     `json:"class"`
}

// MarshalJSON returns the model file. Equal trees give equal bytes. It leaves out what only
// pruning needs.
func (t *Tree) MarshalJSON() ([]byte, error) {
	s := stored{Version: treeVersion}
	for _, n := range t.nodes {
		if n.feature < 0 {
			n = node{feature: -1, class: n.class}
		}
		s.Feature, s.Cut = append(s.Feature, n.feature), append(s.Cut, n.cut)
		s.Left, s.Right, s.Class = append(s.Left, n.left), append(s.Right, n.right), append(s.Class, n.class)
	}
	return json.Marshal(s)
}

// UnmarshalJSON reads a model file. Children must come after their parents, so walking down a
// tree always ends. Anything else is an error.
func (t *Tree) UnmarshalJSON(b []byte) error {
	var s stored
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("classify: read tree: %w", err)
	}
	n := len(s.Feature)
	if s.Version != treeVersion || n == 0 || n > maxNodes || len(s.Cut) != n || len(s.Left) != n || len(s.Right) != n ||
		len(s.Class) != n {
		return errors.New("classify: read tree: unknown version or uneven lists")
	}
	nodes := make([]node, n)
	for i := range nodes {
		nodes[i] = node{feature: s.Feature[i], cut: s.Cut[i], left: s.Left[i], right: s.Right[i], class: s.Class[i]}
		leaf := s.Feature[i] == -1
		after := int(s.Left[i]) > i && int(s.Right[i]) > i && int(s.Left[i]) < n && int(s.Right[i]) < n
		if s.Class[i] < 0 || !leaf && (s.Feature[i] < 0 || s.Feature[i] >= Features || !after || math.IsNaN(s.Cut[i])) {
			return fmt.Errorf("classify: read tree: node %d: %+v", i, nodes[i])
		}
	}
	t.nodes = nodes
	return nil
}
