// Command echo-node is one peer of a swarm that crawls together, and has the commands to use
// it. It translates flags, environment and files into options of the packages that do the work.
// It handles signals and exit codes, and does nothing else.
package main
