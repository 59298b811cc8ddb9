// Package follow says whom to follow: by the rules of the operator, by the judge of a community on what this peer knows
// of somebody, and by what persons said, which goes before all that. It gives verdicts, and asks no server.
package follow
