package capture

// JoinDevices makes one device of every process: that on which it
// worked longest. A process that also touched another device (a context opened
// by mistake on device 0 is common) is still one rank. It counts the kernels that
// ran elsewhere.
func (r *Recording) JoinDevices() {
	worked := make([]int64, len(r.Devices))
	for i := range r.Kernels {
		worked[r.Kernels[i].Device] += r.Kernels[i].End - r.Kernels[i].Start
	}
	for _, g := range r.Graphs {
		worked[g.Device] += g.End - g.Start
	}
	home := map[int32]int32{} // device by process
	for i, u := range r.Devices {
		if at, ok := home[u.Process]; !ok || worked[i] > worked[at] || worked[i] == worked[at] &&
			u.Ordinal < r.Devices[at].Ordinal {
			home[u.Process] = int32(i)
		}
	}
	to := make([]int32, len(r.Devices))
	for i, u := range r.Devices {
		to[i] = home[u.Process]
	}
	for i := range r.Kernels {
		k := &r.Kernels[i]
		if at := to[k.Device]; at != k.Device {
			k.Device = at
			r.OtherDevice++
		}
	}
	for i := range r.Graphs {
		r.Graphs[i].Device = to[r.Graphs[i].Device]
	}
}

// WorkingProcesses is the number of processes that ran anything.
func (r *Recording) WorkingProcesses() int {
	working := NewIndex[int32]()
	for _, u := range r.Devices {
		working.Number(u.Process)
	}
	return len(working.Values)
}
