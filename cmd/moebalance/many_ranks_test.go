package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A run of 512 ranks, made of a capture of four with the ranks numbered on, is a page of
// text.
func TestManyRanksTakeAPage(t *testing.T) {
	t.Chdir("../..")
	path := filepath.Join(t.TempDir(), "summary")
	if _, errs, code := runIn(t, "trace", "--summary", path,
		"testdata/deepseek-ep4-ranks/normal.rank?.sqlite"); code != exitDone {
		t.Fatal(errs)
	}
	repeatRanks(t, path, 4, 128)
	out, errs, code := runIn(t, "trace", path)
	if lines := strings.Count(out, "\n"); code != exitDone || lines > 16 || !strings.Contains(out, "512 ranks") {
		t.Errorf("exit %d, %d lines, want a page; %s\n%s", code, lines, errs, out)
	}
}

// repeatRanks rewrites a summary of so many ranks to hold it copies times.
func repeatRanks(t *testing.T, path string, ranks, copies int) {
	t.Helper()
	packed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	zip, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(zip)
	if err != nil {
		t.Fatal(err)
	}
	magic, rest, _ := bytes.Cut(content, []byte("\n"))
	length, n := binary.Uvarint(rest)
	var head struct {
		Exports []map[string]any `json:"exports"`
	}
	decoder := json.NewDecoder(bytes.NewReader(rest[n : n+int(length)]))
	decoder.UseNumber() // times exceed 2^53
	if err := decoder.Decode(&head); err != nil {
		t.Fatal(err)
	}
	columns := make([][]byte, ranks) // four for every rank, behind the header
	rest = rest[n+int(length):]
	for i, e := range head.Exports {
		events, err := e["ranks"].([]any)[0].(map[string]any)["events"].(json.Number).Int64()
		if err != nil {
			t.Fatal(err)
		}
		size := 0
		for range 4 * events {
			_, n := binary.Uvarint(rest[size:])
			size += n
		}
		columns[i], rest = rest[:size], rest[size:]
	}
	exports, rank := []json.RawMessage{}, 0
	var events []byte
	for number := range copies {
		for i, e := range head.Exports {
			start, n := binary.Varint(columns[i]) // no two ranks start at the same nanosecond
			events = append(binary.AppendVarint(events, start+int64(number)), columns[i][n:]...)
			e["world"] = ranks * copies
			e["export"].(map[string]any)["ranks"] = []int{rank}
			e["ranks"].([]any)[0].(map[string]any)["rank"].(map[string]any)["rank"] = rank
			rank++
			text, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			exports = append(exports, text)
		}
	}
	text, err := json.Marshal(map[string]any{"exports": exports})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	_, _ = w.Write(append(magic, '\n'))
	_, _ = w.Write(binary.AppendUvarint(nil, uint64(len(text))))
	_, _ = w.Write(text)
	_, _ = w.Write(events)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}
