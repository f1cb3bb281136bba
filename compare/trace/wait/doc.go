// Package wait judges for whom and for what ranks wait at collectives.
//
// The wait at a collective is the last arrival − the mean arrival. What the last rank took more than
// the mean rank since they met, as the replay of the step has it, is its parts: compute of experts,
// other compute, and waiting for launches. A part that makes most of the wait is its cause.
//
// What slower hardware adds to a rank's compute is in the part of that compute: one
// arm alone cannot tell it from load.
//
// The package sees plain values. It decides nothing where steps cannot be replayed: waiting is then
// unknown.
package wait
