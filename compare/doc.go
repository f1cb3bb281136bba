// Package compare holds one comparison of two arms: the same benchmark with
// the learned router (normal) and with balanced routing (perfect).
//
// It stands on plain values. Judge takes the launches of a paired campaign and
// says what the throughput gain is, how sure that is, and whether the campaign
// may be believed at all; CompareTraces takes the traces of both arms and says
// in which phases, layers and ranks the difference lies. Launching, storing and
// reading files is the business of the packages below and of the command.
//
// A gain is a fraction: 0.198 means that perfect routing does 19.8 % more work
// in the same time. It is what perfect balance wins, and no placement of experts
// will win all of it: perfect routing evens out the load of every single step,
// and changes what the ranks exchange.
package compare
