// Command echo-lab redoes the measurements of the papers that echo-node follows,
// and prints their figures beside ours. Nothing of it is in echo-node.
//
// The commands are listed in README.md beside this file.
//
// Exit codes: 0 done, 1 failed, 2 wrong usage, 3 done but incomplete.
package main
