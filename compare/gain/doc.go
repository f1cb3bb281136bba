// Package gain judges a campaign: launches of a benchmark with the learned router (the normal
// arm) and with balanced routing (the perfect arm). Judge computes the throughput gain with its
// interval, checks whether the arms may be compared at all, and gives the verdict. What it found
// are codes and numbers; package answer words them.
//
// A gain is a fraction: 0.198 means that perfect routing does 19.8 % more work in
// the same time. It is an upper limit for placements of experts: perfect routing
// balances the load of every single step, and also changes the traffic between
// ranks.
//
// # Launches that hold all arms
//
// Where the router can be switched, each launch holds all arms (WithinLaunch), in blocks of an
// order and its reverse, ABBA and BAAB in turn. What a launch adds to all its segments goes
// out, and what a drift adds, too; what is left of it is how far its gain is from that of
// other launches, which nothing within it shows. So a launch counts once, by the mean of the
// log ratios of its blocks, from six on their median, and the interval is Student's t over
// launches. A verdict takes five: where a launch gains nothing or twice the threshold by
// chance, four agree in one of eight campaigns. A block counts where it has as many values of both
// arms, two at least; a launch, where it has such a block.
//
// Simulated by TestWithinLaunches, through Judge (2,000 campaigns a cell, made before any data;
// launches differ by 5 %, and their gains by 0.55 % where nothing else is said): coverage of the
// 95 % interval and its mean half-width, both in %, by the noise of a segment.
//
//	launches  blocks        0.3 %         1.5 %           5 %   1.5 %, gains    1.5 %, 10 % of
//	                                                            2 % apart       segments 25 % slow
//	       1       2   98.8  2.5   97.1  10.5   95.0  34.4   90.6  10.5   96.3  56.2
//	               4   97.6  1.3   97.4   2.5   96.6   7.3   73.0   2.5   99.0  12.3
//	               6   97.0  1.2   95.7   1.9   93.4   5.1   64.3   1.9   98.1   8.6
//	       2       1   94.3  4.4   96.1  11.7   95.6  37.2   95.5  17.8   95.1  55.5
//	               2   94.5  4.3   95.0   8.5   95.5  25.4   95.3  16.3   94.0  42.9
//	               4   95.5  4.1   95.8   6.9   95.8  18.9   94.7  15.4   95.6  30.9
//	               6   95.3  4.2   93.7   6.5   95.4  17.6   95.0  15.6   96.0  16.3
//	       3       1   95.6  1.4   94.9   3.5   94.8  11.0   94.9   5.5   97.7  17.7
//	               2   95.7  1.3   95.4   2.6   94.0   7.8   95.1   4.9   97.2  13.4
//	               4   95.1  1.2   95.0   2.0   94.6   5.6   95.0   4.7   95.0   9.7
//	               6   95.1  1.2   94.7   2.0   95.0   5.3   94.8   4.6   96.2   5.3
//	       5       1   94.1  0.7   95.6   1.9   95.3   5.8   94.3   2.9   98.2   9.8
//	               2   94.9  0.7   95.3   1.4   95.1   4.2   95.1   2.7   96.9   7.1
//	               4   95.1  0.7   96.1   1.1   95.5   3.0   95.3   2.5   96.0   5.1
//	               6   95.0  0.7   94.8   1.0   95.3   2.8   95.1   2.5   97.4   2.8
//	       8       1   95.4  0.5   94.7   1.3   94.4   4.1   95.4   2.0   97.7   6.8
//	               2   94.5  0.5   93.7   1.0   94.3   2.9   94.7   1.8   95.6   5.0
//	               4   95.2  0.5   95.0   0.8   94.8   2.1   95.1   1.7   95.5   3.5
//	               6   94.5  0.5   94.6   0.7   94.6   1.9   94.1   1.7   97.4   2.1
//
// At a gain of 10 % these are 1.1 times as many points: five launches of two blocks, the default,
// give ±1.5 points at a segment noise of 1.5 %. The median costs width where no segment falls
// out, and halves it where some do. One launch does not show how launches differ: its interval
// is that of its blocks, two at least, widened by LaunchSD, and covers what it says only where
// that is right. It is no verdict (OneLaunch).
//
// A launch is outlying if its gain is far from those of the others (stats.Outlying, in 2 % of
// campaigns without any), a segment if it is far from the median of its arm in its launch
// (segmentLimit, likewise). Both are named; neither is left out.
//
// # One arm a launch
//
// Elsewhere launches run in pairs, in blocks of AB BA or BA AB drawn by a seed of the campaign's own.
// The estimate is the crossover t (stats.Crossover): the mean of the two orders' mean log
// gains, with n−2 degrees of freedom. It takes out what running second costs, and a linear
// drift. Six pairs are the least and eight the default: at a noise of 1 % per launch, six
// tell 12 % from 10 % two times in three.
//
// The choice rests on this table of simulated campaigns (20,000 a cell), made before any
// data and not revisited after. Per method, in %: coverage of the 95 % interval; how often
// it is above the threshold when the gain is exactly on it; how often when the gain is 12 %
// and the threshold 10 %.
//
//	noise of a launch      pairs  crossover t       paired t
//	lognormal 1 %              6  95.1  2.6   65    95.1  2.5   71
//	                           8  95.1  2.4   85    95.0  2.4   87
//	                          12  95.3  2.2   98    95.4  2.2   98
//	lognormal 3 %              8  95.1  2.4   17    95.0  2.4   18
//	                          20  95.3  2.4   44    95.3  2.4   44
//	lognormal 10 %            20  95.3  2.4    8    95.3  2.4    8
//	drift of 5 %               6  95.1  2.6   65    95.8  2.1   67
//	second launch 5 % slower   6  95.1  2.6   65   100.0  0.0    0
//	                          12  95.3  2.2   98   100.0  0.0    0
//	two clocks 4 % apart       6  95.0  2.7   18    95.0  2.6   20
//	                          20  94.9  2.6   66    94.8  2.6   67
//	t3 of 1 %                  6  95.9  2.0   41    95.8  2.0   45
//	                          20  95.6  2.2   89    95.7  2.2   89
//
// The paired methods lose all power to an order effect; the crossover loses one degree of
// freedom. Three kinds of noise break every method, and a warning says when the data show
// them (checks outliers, independent_pairs, carry_over):
//
//	10 % of perfect launches   8  96.9  1.2   36    97.2  1.2   37
//	20 % slower               20  87.9  0.3   12    87.7  0.3   12
//	AR(1) of gains, 0.6        8  71.9 14.0   81    69.6 15.1   83
//	                          20  68.0 15.8   97    67.1 16.2   97
//	normal launch 2 % slower   8  55.0 45.0  100    64.1 35.9   99
//	after a perfect one       20   6.7 93.3  100    10.8 89.2  100
//
// # Outliers
//
// A launch is an outlier beyond 3 + 48/launches standard deviations from the median of its
// arm, so that about 2 % of campaigns without any have one. It is named, and its pair is left out
// where six pairs remain; where more than a quarter of the pairs would go, or a tenth of the launches
// count only because others failed, nothing is decided. Launches that hold all arms are named and stay.
// Simulated with the statistics of this rule (2,000 campaigns a cell, launches of one arm slow by 10 to
// 40 %), in %: coverage and width by crossover t of all pairs, and without those of outliers.
//
//	                           all pairs      without
//	noise 2 %, none slow    8   95.6   4.7   95.3   4.7
//	                       20   94.9   2.6   94.6   2.6
//	10 % of one arm slow    8   97.6  14.1   95.2
//	                       12   97.1  11.0   95.5   3.9
//	                       20   89.9   8.7   95.1   2.8
//	20 % of one arm slow    8   94.6  20.4   93.7
//	                       12   87.7  15.6   93.8   4.9
//	                       20   58.7  11.9   95.0   3.2
//	noise 5 %, 20 % slow    8   92.9  23.6   91.9
//	                       12   85.8  17.9   89.0  12.8
//	                       20   66.4  13.4   87.7   8.8
//
// Noise of 5 % hides launches that are 10 % slow, and no rule tried that keeps its width without
// them finds those.
//
// # Points
//
// A campaign measured at several loads is judged at each (Result.Points). Its intervals
// hold together: each of K has the confidence 1 − (1−c)/K (Bonferroni), whatever the points
// of one launch have in common. The crossover is interpolated, with the band of these
// intervals.
//
// # More arms
//
// Within launches every further arm is judged against the normal one as the perfect arm is, and
// its share of the ceiling has Fieller's interval over launches (stats.Ratio). With one arm a
// launch each pair is a block of all arms in balanced orders, and the gains are those of one
// least-squares fit (stats.FitBlocks), of which the crossover t is the
// case of two. The share of the ceiling that an arm recovers has Fieller's interval. It
// was chosen by this table (4,000 campaigns a cell, true share 60 %, ceiling 20 % where
// nothing else is said): coverage of the 95 % interval in % by Fieller, the delta method
// and a bootstrap of blocks.
//
//	noise of a launch       blocks  Fieller  delta  bootstrap
//	lognormal 1 %                6     95.7   95.8       86.1
//	                            12     95.0   95.0       89.2
//	3 %, ceiling 9 %             6     94.7   95.7       85.9
//	                            12     95.0   95.4       89.2
//	positions 5 % apart          6     95.7   95.8      100.0
//	t3 of 1 %                    6     95.1   95.2       84.9
//	further arm with 3 %, the    6     87.8   88.0       86.0
//	  others with 1 %           12     86.5   86.7       89.5
//
// The delta method does as well, and has an interval where the ceiling is not clear of
// zero, where none is right. Noise that differs by arm breaks the fit, which pools it.
//
// # Load and time
//
// Arms whose routers make a known imbalance over ranks, within each launch, give the line of time
// over load (Dose): of each launch the slope of least squares, and Student's t over launches.
// Simulated by TestDoseCoverage, through Judge (2,000 campaigns a cell; balanced routing, loads of 1.2
// and 1.5 and learned routing in two blocks, noise as above with 1.5 % of a segment): coverage of the
// 95 % interval, and its mean half-width in % of time for each 10 % of imbalance.
//
//	launches       1     2     3     5     8
//	covers      97.5  95.0  94.9  95.2  95.1
//	half-width  2.30  1.81  0.57  0.30  0.20
//
// The package stands on plain values. It launches, stores and reads nothing.
package gain
