// Command echo-bench is the measuring tool of echo-node. Its figures for politeness, duplicates
// and coverage come from the test web's server, not from the crawler's own counts.
//
//	echo-bench world    serve the synthetic web that the other commands use
//	echo-bench report   read from a running world what its server saw
//	echo-bench people   serve people of a simulated Mastodon and Bluesky, to follow
//	echo-bench churn    a swarm under kills, a cut and a join, next to a naive crawler
//	echo-bench replicas pages per second with many replicas of a slice and with one
//	echo-bench zones    the cost of zones in a simulated swarm of 100,000 peers
//	echo-bench crawl    echo-node, Colly, wget2 and Scrapy on the same web
//	echo-bench frontier a frontier of millions of URLs: memory, start, pops per second
//
// Exit codes: 0 done, 1 failed, 2 wrong usage, 3 done but incomplete.
package main
