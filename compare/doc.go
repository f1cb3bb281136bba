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
// in the same time. It is an upper bound on what balance can win, because
// perfect routing also changes what the ranks exchange and still pays for the
// gate; the reports call it headroom.
package compare
