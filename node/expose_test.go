package node

import "github.com/echo-node/echo-node/store/db"

// Store returns the store, so that tests can commit as a source would.
func (n *Node) Store() *db.Store { return n.store }
