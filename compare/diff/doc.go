// Package diff compares the traces of a normal and a perfect arm: in which phases,
// layers and ranks the difference of a step lies, how much of it balance explains,
// and whether the two sides are such arms at all. It reads no file and gives no
// verdict on throughput: package gain does, from repeated launches.
package diff
