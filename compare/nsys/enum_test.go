package nsys

import (
	"context"
	"testing"

	"github.com/moebalance/moebalance/compare/nsys/capture"
)

// shifted is a capture whose event types are numbered otherwise, as its table of
// enumerations says: what used to be a range (59) is now a mark.
func shifted() *fixture {
	f := newFixture().sql("CREATE TABLE ENUM_NSYS_EVENT_TYPE (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT)")
	f.sql("INSERT INTO ENUM_NSYS_EVENT_TYPE VALUES (59,'NvtxMark',''), (159,'NvtxPushPopRange',''), (160,'NvtxStartEndRange',''), (175,'NvtxDomainCreate',''), (75,'SECRET','')")
	f.sql("INSERT INTO NVTX_EVENTS VALUES (0,NULL,175,'NCCL',NULL,%d,NULL,3)", tid(0, 1))
	for _, r := range []struct {
		kind, domain int
		name         string
	}{{159, 0, "layer 3 experts"}, {160, 0, "[Executor] _forward_step 4:"}, {59, 0, "layer 5 combine"},
		{60, 0, "layer 6 combine"}, {159, 3, "layer 7 combine"}} {
		f.sql("INSERT INTO NVTX_EVENTS VALUES (0,50,%d,'%s',NULL,%d,NULL,%d)", r.kind, r.name, tid(0, 1), r.domain)
	}
	return f.work(0, 1, 10, 7, "k")
}

// Of the types without a name in the table, 60 means what its name says elsewhere
// (it has another number) and 75 is taken; the imports (70, 71) are not named and
// mean what they always did.
func TestEventTypesByName(t *testing.T) {
	path := shifted().write(t, "shifted.sqlite")
	trace := mustRead(t, Options{}, path)
	equal(t, "cells", len(trace.Cells), 1)
	equal(t, "cell", trace.Cells[0], Cell{Rank: 0, Step: 4, Layer: 3, Phase: PhaseExperts, Instances: 1, TotalNS: 7,
		BusyNS: 7})
	rec, err := capture.Read(context.Background(), path, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "ranges", len(rec.Ranges), 3)

	imported := newFixture().sql(
		"CREATE TABLE ENUM_NSYS_EVENT_TYPE (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT)")
	imported.sql("INSERT INTO NVTX_EVENTS VALUES (0,50,70,'layer 3 experts',NULL,%d,NULL,0)", tid(0, 1))
	trace = mustRead(t, Options{}, imported.work(0, 1, 10, 7, "k").write(t, "imported.sqlite"))
	equal(t, "layer of an import", trace.Cells[0].Layer, 3)

	taken := newFixture().sql(
		"CREATE TABLE ENUM_NSYS_EVENT_TYPE (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT)")
	taken.sql("INSERT INTO ENUM_NSYS_EVENT_TYPE VALUES (59,'NvtxMark','')").push(0, 0, 50, "layer 3 experts")
	trace = mustRead(t, Options{}, taken.work(0, 1, 10, 7, "k").write(t, "taken.sqlite"))
	equal(t, "layer of a mark", trace.Cells[0].Layer, None)
}
