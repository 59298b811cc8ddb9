// Package hostile makes hostile peers for tests: messages that a peer of some standing
// should not send, in each bad form, and hosts that lie in their answers. Its tests hold
// every kind of request, found by the protocol's descriptor, to one table (RuleOf).
//
//   - TestTable: each kind x standing x form, in fake time.
//   - TestFleet: five honest peers and some hostile ones, for hours of fake time;
//     -hours, -hostile, -slicebits and -every make it larger.
//   - TestFloodOfStrangers: on real sockets; -flood 100000 is all of it.
//   - FuzzServe and FuzzMessages: what a fuzzer makes of messages.
//   - TestWeaknesses: what a hostile replica can still do in the slices that it keeps,
//     the list Weaknesses, each shown by a test that fails when it is mended.
//
// What a hostile replica can still do:
//
//	a replica makes up the next ReplicaSet             one of three is believed, and has the slice alone
//	an owner forgets links                        it acknowledges them and writes nothing down
//	an owner replaces records                     its replicas take any row, in any fetcher's name
//	a replica stops a slice while another is away  two of three do not lease it
package hostile
