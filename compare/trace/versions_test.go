package trace

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The columns of three tables as versions of nsys wrote them, in their order,
// which moves: greenContextId stands between contextId and streamId.
const (
	kernels2021 = "start end deviceId contextId streamId correlationId globalPid demangledName shortName launchType cacheConfig registersPerThread gridX gridY gridZ blockX blockY blockZ staticSharedMemory dynamicSharedMemory localMemoryPerThread localMemoryTotal gridId sharedMemoryExecuted graphNodeId sharedMemoryLimitConfig"
	kernels2022 = "start end deviceId contextId streamId correlationId globalPid demangledName shortName mangledName launchType cacheConfig registersPerThread gridX gridY gridZ blockX blockY blockZ staticSharedMemory dynamicSharedMemory localMemoryPerThread localMemoryTotal gridId sharedMemoryExecuted graphNodeId sharedMemoryLimitConfig"
	kernels2024 = "start end deviceId contextId greenContextId streamId correlationId globalPid demangledName shortName mangledName launchType cacheConfig registersPerThread gridX gridY gridZ blockX blockY blockZ staticSharedMemory dynamicSharedMemory localMemoryPerThread localMemoryTotal gridId sharedMemoryExecuted graphNodeId sharedMemoryLimitConfig"
	kernels2026 = kernels2024 +
		" qmdBulkReleaseDone qmdPreexitDone qmdLastCtaDone graphId clusterX clusterY clusterZ clusterSchedulingPolicy maxPotentialClusterSize maxActiveClusters sharedMemoryRequestedPercentage tensorSizeMinusOneElements"
	calls2021  = "start end eventClass globalTid correlationId nameId returnValue callchainId"
	ranges2021 = "start end eventType rangeId category color text globalTid endGlobalTid textId domainId uint64Value int64Value doubleValue uint32Value int32Value floatValue jsonTextId jsonText"
)

// tableRow is one tableRow: the columns that matter, others NULL or 0.
type tableRow map[string]any

// insert writes a tableRow with all columns of its table.
func (r tableRow) insert(table, columns string) string {
	var values []string
	for _, c := range strings.Fields(columns) {
		switch v := r[c].(type) {
		case nil:
			values = append(values, "NULL")
		case string:
			values = append(values, "'"+v+"'")
		default:
			values = append(values, fmt.Sprint(v))
		}
	}
	return fmt.Sprintf("INSERT INTO %s VALUES (%s);\n", table, strings.Join(values, ","))
}

func tableOf(name, columns string) string {
	return fmt.Sprintf("CREATE TABLE %s (%s);\n", name, strings.ReplaceAll(columns, " ", ", "))
}

// tableVersions are the table and column sets of nsys 2021 to 2026.
var tableVersions = []struct {
	nsys, schema    string
	metadata        string // table; none before 2022
	kernels, ranges string
	others          string
}{
	{"", "", "", kernels2021, ranges2021, ""},
	{"2022.1.3", "2.9.1", "EXPORT_META_DATA", kernels2022, ranges2021, ""},
	{"2022.4.2", "3.0.0", "EXPORT_META_DATA", kernels2022, ranges2021,
		"CREATE TABLE ENUM_NSYS_EVENT_TYPE (id, name, label);"},
	{"2023.1.2", "3.1.2", "EXPORT_META_DATA", kernels2022, ranges2021,
		"CREATE TABLE ENUM_CUDA_KRENEL_LAUNCH_TYPE (id, name, label);"},
	{"2023.3.1", "3.4.0", "META_DATA_EXPORT", kernels2022, ranges2021,
		"CREATE TABLE TARGET_INFO_CUDA_NULL_STREAM (streamId, contextId);"},
	{"2024.5.1", "3.13.2", "META_DATA_EXPORT", kernels2024, ranges2021,
		"CREATE TABLE TARGET_INFO_CUDA_CONTEXT_INFO (contextId, isGreenContext);"},
	{"2025.3.2", "3.20.3", "META_DATA_EXPORT", kernels2024, ranges2021 + " binaryData", deviceMap + "(0, 0, 5);"},
	{"2026.2.1", "3.25.0", "META_DATA_EXPORT", kernels2026, ranges2021 + " binaryData",
		"CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs, utcTime, localTime, systemClockNs); INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (17, '', '', 3);"},
	// as DLProf leaves them
	{"2025.3.2", "3.20.3", "META_DATA_EXPORT", kernels2024 + " kernel_name long_kernel_name", ranges2021,
		"CREATE TABLE SystemInfo (x);"},
}

// The same events in the tables of every version are the same trace. One layer
// and expert each come from a plain push/pop range, a registered one, a start/end
// range, the two kinds that NVTXT imports, and one that was never closed.
func TestVersionsAreTheSameTrace(t *testing.T) {
	ranges := []tableRow{
		{"start": 0, "end": 1000, "eventType": 59, "text": "[Executor] _forward_step 4: 1 ctx reqs, 2 gen reqs"},
		{"start": 10, "end": 90, "eventType": 59, "text": "layer 0 router"},
		{"start": 110, "end": 190, "eventType": 59, "textId": 4},
		{"start": 210, "end": 290, "eventType": 60, "rangeId": 7, "text": "layer 2 expert 6"},
		{"start": 310, "end": 390, "eventType": 70, "text": "layer 3 combine"},
		{"start": 410, "end": 490, "eventType": 71, "textId": 5},
		{"start": 510, "eventType": 59, "text": "model.layers.5.mlp.gate"},
		{"start": 5, "eventType": 34, "text": "layer 9 experts"},     // a mark
		{"start": 0, "eventType": 75, "text": "NCCL", "domainId": 2}, // a domain and a range in it
		{"start": 10, "end": 900, "eventType": 59, "text": "layer 8 experts", "domainId": 2},
	}
	for _, v := range tableVersions {
		t.Run(v.nsys+" "+v.schema, func(t *testing.T) {
			f := &fixture{statements: []string{tableOf("StringIds", "id value"), tableOf(kernelTable, v.kernels),
				tableOf(callTable, calls2021), tableOf(rangeTable, v.ranges), v.others}}
			f.strings = []string{"k<(int)1>(int *)", "k", "cudaLaunchKernel_v7000", "layer 1 dispatch",
				"layer 4 experts"}
			if v.metadata != "" {
				f.sql("CREATE TABLE %s (name TEXT NOT NULL, value TEXT)", v.metadata)
				f.sql("INSERT INTO %s VALUES ('EXPORT_PRODUCT_VERSION','%s'),('EXPORT_SCHEMA_VERSION','%s'),('EXPORT_PARAM_TIMES_TO_EXPORT',''),('CAPTURE_EVENT_TYPE','a'),('CAPTURE_EVENT_TYPE','b')", v.metadata, v.nsys, v.schema)
			}
			for _, r := range ranges {
				r["globalTid"] = tid(5, 5)
				f.statements = append(f.statements, r.insert(rangeTable, v.ranges))
			}
			for i := range 6 {
				at := 100*i + 20
				f.statements = append(f.statements,
					tableRow{"start": at, "end": at + 2, "eventClass": i % 2, "globalTid": tid(5, 5), "correlationId": i + 1,
						"nameId": 3, "returnValue": 0}.insert(callTable, calls2021),
					tableRow{"start": at + 1000, "end": at + 1010 + i, "deviceId": 0, "contextId": 1, "greenContextId": 0,
						"streamId": 7 + i, "correlationId": i + 1, "globalPid": pid(5),
						"demangledName": 1, "shortName": 2, "tensorSizeMinusOneElements": "[]"}.insert(kernelTable,
						v.kernels))
			}
			trace := mustRead(t, Options{}, f.write(t, "version.sqlite"))
			e := trace.Exports[0]
			equal(t, "version", e.NsysVersion, v.nsys)
			equal(t, "schema", e.SchemaVersion, v.schema)
			near(t, "launches found", trace.Coverage.LaunchShare, 1)
			// kernel i takes 10 + i ns in layer i
			want := []Phase{PhaseRouter, PhaseDispatch, PhaseExperts, PhaseCombine, PhaseExperts, PhaseRouter}
			for i, c := range trace.Cells {
				if int(c.Layer) != i || c.Step != 4 || c.Phase != want[i] || c.TotalNS != int64(10+i) {
					t.Errorf("have %+v", c)
				}
			}
			equal(t, "cells", len(trace.Cells), 6)
			if x := trace.Experts; len(x) != 1 || x[0].Layer != 2 || x[0].Expert != 6 || x[0].TotalNS != 12 {
				t.Errorf("have %+v", x)
			}
			equal(t, "name", trace.Kernels[0].Name, "k<(int)1>(int *)")
			codes := []string{}
			for _, w := range e.Warnings {
				codes = append(codes, w.Code)
			}
			if !slices.Equal(codes, []string{"open_ranges"}) {
				t.Errorf("have %v", e.Warnings)
			}
		})
	}
}
