// Package hostile makes hostile peers for tests. It has messages that a peer in some role
// should not send, in each bad form, and hosts that lie in their responses. Its tests check
// every kind of request, found by the protocol's descriptor, against one table (RuleOf).
//
//   - TestTable: each kind x role x form, in fake time.
//   - TestFleet: five honest peers and some hostile ones, for hours of fake time; -hours,
//     -hostile, -slicebits and -every make it larger.
//   - TestFloodOfStrangers: on real sockets; -flood 100000 is the full test.
//   - FuzzServe and FuzzMessages: messages made by a fuzzer.
//   - TestWeaknesses: what a hostile replica can still do in the slices that it keeps, the list
//     Weaknesses. Each is shown by a test that fails when the weakness is fixed.
//
// What a hostile replica can still do:
//
//	a replica makes up the next ReplicaSet         one of three is believed, and has the slice alone
//	an owner forgets links                         it acknowledges them and writes nothing down
//	an owner replaces records                      its replicas take any row, in any fetcher's name
//	a replica stops a slice while another is away  two of three do not lease it
package hostile
