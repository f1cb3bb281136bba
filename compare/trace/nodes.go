package trace

import (
	"cmp"
	"slices"

	"github.com/moebalance/moebalance/compare/capture"
)

// creation is the node's latest row that is not after the given time, its first
// row if all are, and −1 without one: ids come again after a graph is destroyed.
func creation(nodes []capture.GraphNode, process int32, id, before int64) int32 {
	after, _ := slices.BinarySearchFunc(nodes, capture.GraphNode{Process: process, ID: id, Created: before},
		func(n, t capture.GraphNode) int {
			return cmp.Or(cmp.Compare(n.Process, t.Process), cmp.Compare(n.ID, t.ID),
				cmp.Or(cmp.Compare(n.Created, t.Created), -1))
		})
	for _, i := range []int{after - 1, after} {
		if i >= 0 && i < len(nodes) && nodes[i].Process == process && nodes[i].ID == id {
			return int32(i)
		}
	}
	return -1
}

// mostClones bounds a chain of clones: a longer one is a cycle.
const mostClones = 64

// origin follows a node from clone to clone to the one that was created while a stream was captured. It is −1 where
// the chain leaves the capture or is a cycle. A kernel that a graph replays runs where the stream was captured, not
// where the graph is launched.
func origin(nodes []capture.GraphNode, at int32) int32 {
	for range mostClones {
		if at < 0 {
			return -1
		}
		n := nodes[at]
		if n.Origin == 0 || n.Origin == n.ID {
			return at
		}
		at = creation(nodes, n.Process, n.Origin, n.Created)
	}
	return -1
}
