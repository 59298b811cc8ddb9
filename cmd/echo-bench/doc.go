// Command echo-bench is the measuring tool of echo-node. Its figures about
// politeness, duplicates and coverage come from the world's side, not from the
// crawler's own count.
//
//	echo-bench world    serve the synthetic web that the other commands measure on
//	echo-bench report   ask a running world what its server saw
//	echo-bench people   serve people of a simulated Mastodon and Bluesky, to follow
//	echo-bench churn    a swarm under kills, a cut and a join, beside a naive crawler
//	echo-bench replicas pages a second with many replicas of a slice against one
//	echo-bench zones    what zones cost in a swarm of 100,000 peers, simulated
//	echo-bench crawl    echo-node beside Colly, wget2 and Scrapy on the same web
//	echo-bench frontier a frontier of millions of URLs: memory, start, pops a second
//
// Exit codes: 0 done, 1 failed, 2 wrong usage, 3 done but incomplete.
package main
