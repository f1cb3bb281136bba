package capture

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// eventTypeTable names the values of NVTX_EVENTS.eventType. Exports before 2022.4
// have no such table.
//
// Note: it is the only enumeration whose values are told apart. What copies copied,
// which kind of launch a kernel was and how a graph node came to be are columns
// that nothing depends on.
const eventTypeTable = "ENUM_NSYS_EVENT_TYPE"

// eventTypes are the values of the events that matter, noType for those that an
// export does not have.
type eventTypes struct {
	pushPop, startEnd             int64
	importPushPop, importStartEnd int64
	domain                        int64
}

const noType = -1

// builtInEventTypes are those of every version seen from 2021 to 2026.
var builtInEventTypes = eventTypes{pushPop: 59, startEnd: 60, importPushPop: 70, importStartEnd: 71, domain: 75}

// byName are the types under the names that exports give them.
func (t *eventTypes) byName() map[string]*int64 {
	return map[string]*int64{
		"NvtxPushPopRange": &t.pushPop, "NvtxStartEndRange": &t.startEnd,
		"NvtxtPushPopRange": &t.importPushPop, "NvtxtStartEndRange": &t.importStartEnd,
		"NvtxDomainCreate": &t.domain,
	}
}

// sql lists the types for an IN.
func (t eventTypes) sql() string {
	return fmt.Sprintf("(%d, %d, %d, %d, %d)", t.pushPop, t.startEnd, t.importPushPop, t.importStartEnd, t.domain)
}

// matters reports whether a value is one of the types.
func (t eventTypes) matters(kind int64) bool {
	switch kind {
	case t.pushPop, t.startEnd, t.importPushPop, t.importStartEnd, t.domain:
		return kind != noType
	}
	return false
}

// eventTypes looks the types up in the export. One that its table does not name has
// the built-in value, unless the table calls that something else.
func (db *database) eventTypes(ctx context.Context) (eventTypes, error) {
	types := builtInEventTypes
	if !db.has(eventTypeTable, "id", "name") {
		return types, nil
	}
	ids, taken := map[string]int64{}, map[int64]bool{}
	err := eachRow(ctx, db.sql, []string{"name", "CAST(id AS INTEGER)"}, eventTypeTable, func(row []string) {
		id, _ := strconv.ParseInt(row[1], 10, 64)
		ids[row[0]], taken[id] = id, true
	})
	for name, value := range types.byName() {
		if id, ok := ids[name]; ok {
			*value = id
		} else if taken[*value] {
			*value = noType
		}
	}
	return types, err
}

// eventTypeNames are the names of all types, as SQL lists them.
func eventTypeNames() string {
	var names []string
	for name := range new(eventTypes).byName() {
		names = append(names, "'"+name+"'")
	}
	slices.Sort(names)
	return "(" + strings.Join(names, ", ") + ")"
}
