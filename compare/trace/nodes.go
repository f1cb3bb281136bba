package trace

import (
	"cmp"
	"slices"

	"github.com/moebalance/moebalance/compare/capture"
)

// sortNodes puts the nodes of CUDA graphs in the order in which creation and origins take them.
func sortNodes(nodes []capture.GraphNode) {
	slices.SortStableFunc(nodes, func(x, y capture.GraphNode) int {
		return cmp.Or(cmp.Compare(x.Process, y.Process), cmp.Compare(x.ID, y.ID), cmp.Compare(x.Created, y.Created))
	})
}

// creation is the node's latest row that is not after the given time, its first
// row if all are, and −1 without one: ids come again after a graph is destroyed.
func creation(nodes []capture.GraphNode, process int32, id, before int64) int32 {
	after, _ := slices.BinarySearchFunc(nodes, capture.GraphNode{Process: process, ID: id, Created: before},
		func(n, t capture.GraphNode) int {
			return cmp.Or(cmp.Compare(n.Process, t.Process), cmp.Compare(n.ID, t.ID),
				cmp.Or(cmp.Compare(n.Created, t.Created), -1))
		})
	same := func(i int) bool { return i >= 0 && i < len(nodes) && nodes[i].Process == process && nodes[i].ID == id }
	switch {
	case same(after - 1):
		return int32(after - 1)
	case same(after):
		return int32(after)
	}
	return -1
}

// origins follows every node from clone to clone to the node that was created
// while a stream was captured. It is −1 where the chain leaves the capture or
// is a cycle. A kernel that a graph replays runs where the stream was captured, not where the
// graph is launched.
func origins(nodes []capture.GraphNode) []int32 {
	const unknown, walking = -2, -3
	roots := make([]int32, len(nodes))
	for i := range roots {
		roots[i] = unknown
	}
	var path []int32
	for i := range roots {
		at, root := int32(i), int32(-1)
		path = path[:0]
		for at >= 0 && roots[at] == unknown {
			roots[at] = walking
			path = append(path, at)
			n := nodes[at]
			if n.Origin == 0 || n.Origin == n.ID {
				root = at
				break
			}
			at = creation(nodes, n.Process, n.Origin, n.Created)
			if at >= 0 && roots[at] >= -1 {
				root = roots[at]
			}
		}
		for _, p := range path {
			roots[p] = root
		}
	}
	return roots
}
