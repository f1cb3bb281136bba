// Package wait says who waits for whom: it brings the clocks of ranks together, splits their
// collectives into waiting for the last rank and transfer, and judges for whom and for what ranks
// wait.
//
// The wait at a collective is the last arrival − the mean arrival. What the last rank took more than
// the mean rank since they met, as the replay of the step has it, is its parts: compute of experts,
// other compute, and waiting for launches. A part that makes most of the wait is its cause.
//
// What slower hardware adds to a rank's compute is in the part of that compute: one
// arm alone cannot tell it from load.
//
// The package sees plain values of kernels. It decides nothing where clocks cannot be
// brought together or collectives do not correspond: waiting is then unknown.
package wait
