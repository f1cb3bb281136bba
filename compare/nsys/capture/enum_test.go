package capture

import (
	"context"
	"testing"
)

// The real captures name their types, and the names are the built-in ones'.
func TestCapturesNameTheBuiltInTypes(t *testing.T) {
	for _, name := range []string{"gptoss-ep4-loop/normal.sqlite", "gptoss-graph/node-normal.sqlite"} {
		db, err := openDatabase(context.Background(), "../../../testdata/"+name)
		if err != nil {
			t.Fatal(err)
		}
		types, err := db.eventTypes(context.Background())
		if err := db.sql.Close(); err != nil {
			t.Fatal(err)
		}
		if err != nil || !db.has(eventTypeTable) || types != builtInEventTypes {
			t.Errorf("%s: have %+v, %v", name, types, err)
		}
	}
}
