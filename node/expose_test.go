package node

import "github.com/echo-node/echo-node/store"

// Store lets tests commit as a source would.
func (n *Node) Store() *store.Store { return n.store }
