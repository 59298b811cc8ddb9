// Command echo-bench is the measuring tool of echo-node. Its figures about
// politeness, duplicates and coverage come from the world's side, not from the
// crawler's own count.
//
//	echo-bench world    serve the synthetic web that the other commands measure on
//	echo-bench report   ask a running world what its server saw
//
// Exit codes: 0 done, 1 failed, 2 wrong usage, 3 done but incomplete.
package main
