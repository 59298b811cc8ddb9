// Command echo-node is one peer of a swarm that crawls together, and the tools
// to talk to it. It turns flags, environment and files into options of the
// packages that do the work, handles signals and exit codes, and nothing else.
package main
