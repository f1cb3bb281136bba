// Package evidence reads what a launch left behind that shows how it was routed: proof lines in its logs, how much
// its counts hold, and the placement that its command names. It judges nothing.
package evidence
