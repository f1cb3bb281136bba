// Package wait says who waits for whom: it brings the clocks of ranks together, finds
// the rank that arrives last at each collective, and splits the waiting for it.
//
// Of the collectives, those of all ranks count: ranks leave one together and arrive at the
// next when their kernel of it begins. With t_r the time from leaving to arriving,
//
//	arrival_r = leave_r + t_r
//	t_r       = kernels_r + experts_r + other compute_r + collectives_r + idle_r
//	idle_r    = host_r + rest_r
//
// holds exactly: time in which several kernels run counts once, for the first of these
// classes. Host lateness is time in which no kernel runs and the call that launches the
// next one has not returned. The mean wait at a collective is the last arrival − the mean
// arrival, so for the last rank each term minus its mean over ranks is a part of it.
// Host lateness, expert load and other compute are such parts; the rest (leaving at different times, GPU idle for another
// reason, collectives of a part of the ranks) is not explained.
//
// What slower hardware adds to a rank's compute is in the part of that compute: one
// arm alone cannot tell it from load.
//
// The package sees plain values of kernels. It decides nothing where clocks cannot be
// brought together or collectives do not correspond: waiting is then unknown.
package wait
