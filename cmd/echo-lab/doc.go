// Command echo-lab repeats the measurements of the papers that echo-node follows, and prints
// their figures next to ours. echo-node contains nothing of it.
//
// README.md in this directory lists the commands.
//
// Exit codes: 0 done, 1 failed, 2 wrong usage, 3 done but incomplete.
package main
