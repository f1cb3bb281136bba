package capture

// JoinDevices makes one device of every process: the one on which it worked longest. A process that also touched
// another device (a context opened by mistake on device 0 is common) is still one rank.
func (r *Recording) JoinDevices() {
	worked := make([]int64, len(r.Devices))
	for _, k := range r.Kernels {
		worked[k.Device] += k.End - k.Start
	}
	for _, g := range r.Graphs {
		worked[g.Device] += g.End - g.Start
	}
	home := map[int32]int32{} // device by process
	for i, d := range r.Devices {
		if at, ok := home[d.Process]; !ok || worked[i] > worked[at] {
			home[d.Process] = int32(i)
		}
	}
	for i, k := range r.Kernels {
		r.Kernels[i].Device = home[r.Devices[k.Device].Process]
	}
	for i, g := range r.Graphs {
		r.Graphs[i].Device = home[r.Devices[g.Device].Process]
	}
}
