// Package control changes the router of a running engine from outside, through a folder
// that every rank reads, and leads one launch through a plan of segments that alternate
// between the arms.
//
// A change needs steps of the engine: after each order the client runs untimed until every
// rank has acknowledged, and only what starts then is timed. An order expires unless the
// driver renews it, so that a driver that dies leaves no server with a balanced router.
// The engine's side is the hook's control.py.
//
// The package starts no process, reads no report and judges nothing: how a client runs,
// and what the time is, is handed in.
package control
