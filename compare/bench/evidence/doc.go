// Package evidence reads what a launch left behind that shows how it was routed and that it
// was this launch: proof lines in its logs, whose files its counts are,
// and the placement that its command names. It judges nothing.
package evidence
