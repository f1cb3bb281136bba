package nsys

// joinDevices makes one unit of every process: that of the device on which it
// worked longest. A process that also touched another device (a context opened
// by mistake on device 0 is common) is still one rank. It counts the kernels that
// ran elsewhere.
func (r *recording) joinDevices() {
	worked := make([]int64, len(r.units))
	for i := range r.kernels {
		worked[r.kernels[i].unit] += r.kernels[i].end - r.kernels[i].start
	}
	for _, g := range r.graphs {
		worked[g.unit] += g.end - g.start
	}
	home := map[int32]int32{} // unit by process
	for i, u := range r.units {
		if at, ok := home[u.process]; !ok || worked[i] > worked[at] || worked[i] == worked[at] && u.device < r.units[at].device {
			home[u.process] = int32(i)
		}
	}
	to := make([]int32, len(r.units))
	for i, u := range r.units {
		to[i] = home[u.process]
	}
	for i := range r.kernels {
		k := &r.kernels[i]
		if at := to[k.unit]; at != k.unit {
			k.unit = at
			r.trouble.elsewhere++
		}
	}
	for i := range r.graphs {
		r.graphs[i].unit = to[r.graphs[i].unit]
	}
	for i := range r.streams {
		r.streams[i].unit = to[r.streams[i].unit]
	}
}

// workers is the number of processes that ran anything.
func (r *recording) workers() int {
	seen := map[int32]bool{}
	for _, u := range r.units {
		seen[u.process] = true
	}
	return len(seen)
}
