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
// # One list of comparisons
//
// A campaign is a list of measurements: of a unit, a block in it, an arm and a point. A unit is what is
// repeated, a pair of launches or one launch that holds all arms. A comparison is one arm against the normal
// one at one point: its units, the gain over them, its checks, its verdict. Results are made of the list of
// comparisons: points and arms are rows of it, the share of the ceiling is the ratio of two, and the line of
// time over load goes through several.
//
// # Launches that hold all arms
//
// Where the router can be switched, each launch holds all arms (WithinLaunch), in blocks of an
// order and its reverse, ABBA and BAAB in turn. What a launch adds to all its segments goes
// out, and what a drift adds, too; what is left of it is how far its gain is from the gain of
// other launches, which nothing within it shows. So a launch counts once, by the mean of the
// log ratios of its blocks, and the interval is Student's t over launches. A verdict takes five:
// where a launch gains nothing or twice the threshold by chance, four agree in one of eight
// campaigns. Six of seven agree in one of nine, and then t is too narrow: the interval also holds the middle between
// two groups of launches wherever a sign test does not show that either is the more frequent (stats.OverGroups).
// A block counts where it has as many values of both arms, two at least; a launch, where it has such a block.
//
// A segment that is far from the median of its arm in its launch, beyond 4 + 5/blocks + 24/segments standard
// deviations by their median, falls out of its block and is named: in about 2 % of campaigns without any. A
// launch is named if its gain is far from the others' by their t, likewise, and stays.
//
// Simulated by TestCoverageWithinLaunches (2,000 campaigns a cell with -tags exhaustive; launches differ by 5 %, and
// their gains by 0.55 % where nothing else is said): coverage of the 95 % interval and its mean half-width, both in %,
// by the noise of
// a segment, with 10 % of the segments 25 % slower in the last two columns.
//
//	launches  blocks       0.3 %        1.5 %          5 %  1.5 %, gains    slow segments    of one arm
//	                                                          2 % apart
//	       2       1    94.3  4.4    96.2 11.7    95.6 37.2    95.5 17.8    94.6 51.2    94.8 31.5
//	               2    94.5  4.3    95.0  8.6    95.5 25.6    95.3 16.4    95.5 19.6    95.3 13.4
//	               4    95.5  4.1    95.8  6.9    95.8 18.9    94.8 15.4    94.6  8.2    94.2  7.3
//	               6    95.0  4.1    96.2  6.1    95.7 15.6    94.8 15.4    95.8  6.5    96.5  6.4
//	       3       1    95.7  1.4    95.0  3.5    94.9 11.0    95.0  5.5    96.8 17.8    95.8 11.4
//	               2    95.7  1.3    95.4  2.6    94.2  7.8    95.2  4.9    95.3  6.6    95.0  4.8
//	               4    95.0  1.2    95.1  2.0    94.7  5.6    95.0  4.7    95.0  2.6    94.8  2.2
//	               6    95.3  1.2    95.0  1.8    95.3  4.7    95.1  4.6    95.5  2.0    95.3  1.9
//	       5       1    94.2  0.7    95.6  1.9    95.3  5.8    94.3  2.9    97.1  8.4    95.5  5.0
//	               2    94.9  0.7    95.3  1.4    95.0  4.2    95.1  2.7    95.1  2.8    94.5  1.9
//	               4    95.2  0.7    96.0  1.1    95.4  3.0    95.3  2.5    95.3  1.2    95.6  1.2
//	               6    95.5  0.7    95.5  1.0    95.0  2.5    95.5  2.5    95.0  1.0    95.2  1.0
//	       8       1    95.8  0.5    95.2  1.3    95.0  4.2    95.9  2.1    97.0  5.2    94.8  3.2
//	               2    95.0  0.5    94.4  1.0    94.7  3.0    95.3  1.9    94.2  1.8    94.2  1.4
//	               4    95.7  0.5    95.7  0.8    95.2  2.1    95.4  1.8    96.0  0.9    95.6  0.8
//	               6    94.5  0.5    94.5  0.7    94.8  1.7    94.5  1.7    95.2  0.7    94.7  0.7
//
// Launches that gain nothing or twice the threshold by chance, by TestCoverageOfTwoKinds (each pattern of them equally
// often; a noise of 1.5 %): five agree in one of sixteen campaigns, of which no interval knows. By t alone seven
// covered 88 to 93 % and eight 92 to 93 %.
//
//	launches           5            6            7            8           10           12
//	1 block      93.8 11.7    96.5 10.0    94.2  8.9    96.7  8.1    94.4  6.9    95.2  6.1
//	2 blocks     93.8 11.6    96.8  9.9    94.2  8.8    97.0  8.0    93.9  6.8    95.6  6.1
//	4 blocks     93.8 11.5    96.9  9.9    94.2  8.8    96.9  8.0    94.6  6.8    95.9  6.1
//
// Noise of 5 % hides slow segments: where one arm alone has them, the intervals covered 85 to 94 % in a
// simulation, and nothing shows it.
//
// Two or three launches of one block have no interval where a block falls out, and are no verdict anyway. At
// a gain of 10 % the widths are 1.1 times as many points: five launches of two blocks, the default,
// give ±1.5 points at a segment noise of 1.5 %. One launch does not show how launches differ: its interval
// is over its blocks, two at least, widened by LaunchSD, and covers what it says only where
// that is right. It is no verdict (OneLaunch).
//
// # One arm a launch
//
// Elsewhere launches run in pairs, in blocks of AB BA or BA AB drawn by a seed of the campaign's own.
// The estimate is the crossover t (stats.Crossover): the mean of the two orders' mean log
// gains, with n−2 degrees of freedom. It takes out what running second costs, and a linear
// drift, under which a paired t loses all power. Six pairs are the least and eight the default: at a noise of
// 1 % per launch, six tell 12 % from 10 % two times in three.
//
// A launch is an outlier beyond 3 + 48/launches standard deviations from the median of its
// arm, so that about 2 % of campaigns without any have one. It is named, and its pair is left out
// where four pairs remain; where more than a quarter of the pairs would go, or a tenth of the launches
// count only because others failed, nothing is decided.
//
// A launch that is slow by less is not seen, and noise of 5 % hides slow ones by 20 %. What they may have added
// is part of the interval: it reaches further, on the side from which they would have moved the gain, by 1.5 times
// what the mean of the kept log gains is above their median.
//
// Simulated by TestCoverageOfPairs (2,000 campaigns a cell, slow launches by 10 to 40 % where nothing else is said):
// coverage of the 95 % interval and its mean half-width, in %, by the number of pairs. The gain is the one
// without slow launches.
//
//	noise of a launch                        6            8           12           20
//	noise 1 %                            95.3  1.7   96.0  1.3   95.5  1.0   96.6  0.8
//	noise 3 %                            95.3  5.1   96.0  4.0   95.5  3.1   96.6  2.3
//	noise 10 %                           95.3 16.9   96.0 13.3   95.5 10.3   96.6  7.8
//	drift of 5 %                         95.5  1.7   96.5  1.3   96.5  1.0   97.0  0.8
//	second launch 5 % slower             95.5  1.7   96.5  1.3   96.6  1.0   97.0  0.8
//	two clocks 4 % apart                 95.5  3.8   95.8  3.0   95.5  2.3   96.5  1.7
//	t3 of 1 %                            96.6  3.0   96.9  2.4   96.2  1.8   97.0  1.3
//	noise 1 %, 10 % of one arm slow      95.7  2.2   96.0  1.6   95.6  1.1   97.2  0.8
//	noise 1 %, 20 % of one arm slow      95.3  4.0   94.8  2.3   95.3  1.4   96.6  0.9
//	noise 2 %, 10 % of one arm slow      95.9  4.3   96.1  3.3   95.8  2.3   97.2  1.7
//	noise 2 %, 20 % of one arm slow      95.5  6.5   95.3  4.4   95.5  2.8   96.7  1.9
//	noise 5 %, 10 % of one arm slow      95.9 10.8   96.1  8.5   95.7  6.1   96.6  4.4
//	noise 5 %, 20 % of one arm slow      95.8 13.8   95.0 10.6   94.3  7.5   93.8  5.3
//	noise 1 %, 20 % of both arms slow    96.2 11.8   94.5  5.0   94.8  2.1   96.2  1.1
//	noise 5 %, 20 % of both arms slow    96.8 19.8   96.5 14.8   96.5 10.7   97.5  7.2
//	10 % of one arm 20 % slower          95.7  2.1   96.4  1.5   97.0  1.1   96.1  0.8
//
// Where a fifth of one arm is slow, what is left of them lies on one side: of campaigns
// on the threshold up to 5.3 % are decided there, and 0.5 % or more on the other. Three kinds of noise no
// interval covers: gains that follow each other (AR(1) of 0.6 covers 68 to 72 %), launches of one arm that
// slow the launches of the other that follow (2 %: 7 to 55 %), and gains of nothing or twice the threshold by pair,
// of which the rarer kind falls out as slow launches do (19 to 30 % at a noise of 1 %, 68 to 79 % at 3 %; one campaign
// in five decides). Launches that hold all arms tell these apart.
//
// # Copies and choices
//
// Values that do not vary as printed are copies, or have too few digits, and many failed attempts choose
// what is counted: both lead the answer and undo a verdict.
//
// # Points and further arms
//
// A campaign measured at several loads is judged at each (Result.Points). Its intervals
// hold together: each of K has the confidence 1 − (1−c)/K (Bonferroni), whatever the points
// of one launch have in common.
//
// Every further arm is judged against the normal one as the perfect arm is, from the same units; its share of
// the ceiling has an interval over units, which is undefined where the ceiling is not clear of zero.
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
//	covers      97.3  95.1  94.9  95.4  95.4
//	half-width  2.30  1.83  0.57  0.30  0.21
//
// The package stands on plain values. It launches, stores and reads nothing.
package gain
