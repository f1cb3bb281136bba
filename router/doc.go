// Package router is the ground of moebalance: the exact mathematics of
// mixture-of-experts routing and of its balance.
//
// It holds the words that every other package speaks (Shape, Layout, Mode,
// Load, Balance) and the routing methods that turn one row of logits into chosen
// experts. Plans stand above it in router/plan, the null in router/chance. Slices
// go in and values come out: the package reads no clock and no environment, prints
// nothing, and of files only model configurations and layouts.
//
// Notation in the comments: T tokens per rank, E routed experts, k experts per
// token (top-k), R expert-parallel ranks, L = E/R experts per rank, G groups of
// which a token may use tg. A slot is one (token, chosen expert) pair, so T
// tokens make T·k slots.
package router
