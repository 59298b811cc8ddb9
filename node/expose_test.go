package node

import "github.com/echo-node/echo-node/store/db"

// Store lets tests commit as a source would.
func (n *Node) Store() *db.Store { return n.store }
