// Package duplicates decides which short texts are copies of each other.
//
// It begins with the method of Xu, Sha, Li, Shan and Wang, "Duplicate messages in Twitter"
// (Computer Engineering and Applications 50(21), 2014):
//
//  1. Official: the content of a text is the text without a final "Retweeted by NAME" (Official).
//     Texts with equal content are copies.
//  2. Marks: the marks of unofficial reposts (RT @u:, via @u, //@u:, @u ...) are removed
//     everywhere, until none is left (Strip; RulesVersion).
//  3. Features: the set of the words, each with weight 1 (Tokens).
//  4. Fingerprint: 64-bit simhash over CityHash64 (Simhash).
//  5. Decision: a Hamming distance of at most 3 bits, found with an exact index (Near).
//
// On short texts step 5 finds little more than equal sets of words. If one word of a 15-word text
// is edited, 9 % of the results are within 3 bits. "echo-lab duplicates" measures it for each kind
// of edit. So the package does more than the paper, unless Options.Paper is set:
//
//   - Candidates also come from bands of a min-hash. Nearly every pair that shares three quarters
//     of its features meets in a band (Buckets).
//   - Every candidate is verified word by word (Compare). A text may differ by a few words, in
//     proportion to its length, or by a comment of up to three words at one end. It may not differ
//     by a negation, and one number or name may not replace another.
//   - A text with fewer features than Options.MinTokens matches only exactly. A text that is only
//     marks matches nothing.
//   - Width, compatibility forms (NFKC) and case are folded. URLs are no features. Chinese,
//     Japanese and Korean text is cut into pairs of characters, so no dictionary has to be shipped
//     or pinned.
//
// # Groups
//
// A group is a representative and the texts that were each compared with it and found to be its
// copies. The representative is the earliest text (by time, then the shorter id, then id). Each
// later text joins the nearest representative before it, or becomes one. So in a chain A-B-C where
// A and C are no copies, C never joins A's group. The result does not depend on the order of input
// (Grouper.Groups).
//
// # In a swarm
//
// Buckets returns the buckets in which a text can meet its copies. A peer that has a part of all
// texts stores each text's buckets with it. With them it finds its texts that meet another peer's
// text (Meets). A Collector queries all these peers, step by step, for the texts that copies connect
// with one text. Its groups are those that one peer with all texts would find. The peers of this
// program do this (node/search).
//
// Alternatively a bucket can have an owner, found by Bucket.Slot, as a Key has. The owner compares
// a new text with the texts of the bucket (Match, or Pairs for many) and keeps the pairs. The pairs
// of all owners together give the same groups.
//
// A bucket needs only the Fingerprint of a text, so no text leaves the peer that crawled it. CityHash is
// not cryptographic: an attacker can make two texts collide.
//
// Everything here is pure. Except for Grouper and Collector, it is safe for concurrent use.
package duplicates
