package rows

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// checkDamaged demands that a damaged file reads as SQLite reads it.
func checkDamaged(t testing.TB, path, what string) (err error) {
	t.Helper()
	db := open(t, path)
	defer db.Close()
	want := bySQLite(db, scribbled)
	checkSame(t, what, each(db, path, scribbled), want)
	return want.err
}

// toDamage is a database in small pages with many spilled records; 1200 rows make
// a tree of three levels.
func toDamage(t testing.TB, rows int) (content []byte) {
	t.Helper()
	path := makeDatabase(t, "PRAGMA page_size = 512", scribble(rand.New(rand.NewPCG(11, 12)), 512, rows))
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestCutAtManyLengths(t *testing.T) {
	content := toDamage(t, 1200)
	path := filepath.Join(t.TempDir(), "cut.sqlite")
	failed := 0
	for n := len(content); n > 0; n -= 1 + n/25 {
		if err := os.WriteFile(path, content[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		if checkDamaged(t, path, fmt.Sprintf("cut at %d of %d", n, len(content))) != nil {
			failed++
		}
	}
	if failed < 50 {
		t.Errorf("want most of the cut files to be unreadable, have %d", failed)
	}
}

// A record that says it goes on behind the end of its page.
func TestRecordBeyondItsPage(t *testing.T) {
	path := makeDatabase(t, "PRAGMA page_size = 512",
		"CREATE TABLE t (a INTEGER, s TEXT); INSERT INTO t VALUES (5, 'abcdefgh');")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// 12 bytes, row 1, a header of 3: an integer of 1 byte, a text of 8
	at := bytes.LastIndex(content, []byte("\x0c\x01\x03\x01\x1d\x05abcdefgh"))
	if at+14 != len(content) {
		t.Fatalf("have the record at %d of %d", at, len(content))
	}
	content[at], content[at+4] = 12+8, 0x1d+2*8
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if checkDamaged(t, path, "beyond its page") == nil {
		t.Error("want an error")
	}
}

// Trees that bite their own tail, and pages that stand in for others.
func TestCycles(t *testing.T) {
	content := toDamage(t, 1200)
	path := filepath.Join(t.TempDir(), "cycle.sqlite")
	pages := len(content) / 512
	rng := rand.New(rand.NewPCG(15, 16))
	failed := 0
	for n := 1; n < pages; n++ {
		page := content[512*n:]
		if page[0] != branchPage {
			continue
		}
		for range 5 {
			bad := bytes.Clone(content)
			to := []uint32{uint32(n + 1), 0, 1, 2, uint32(pages), uint32(pages + 1), 1 << 31,
				uint32(2 + rng.IntN(pages-1))}[rng.IntN(8)]
			at := 8 // the rightmost child
			if cells := int(binary.BigEndian.Uint16(page[3:])); rng.IntN(3) > 0 {
				at = int(binary.BigEndian.Uint16(page[branchHeader+2*rng.IntN(cells):]))
			}
			binary.BigEndian.PutUint32(bad[512*n+at:], to)
			if err := os.WriteFile(path, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			if checkDamaged(t, path, fmt.Sprintf("page %d points to %d", n+1, to)) != nil {
				failed++
			}
		}
	}
	if failed < 10 {
		t.Errorf("want some cycles to be unreadable, have %d", failed)
	}
}

// Any bytes in any place: no panic, and what SQLite makes of it. Every four bytes
// of the input are an offset (three) and what to write there.
func FuzzDamage(f *testing.F) {
	content := toDamage(f, 150)
	rng := rand.New(rand.NewPCG(13, 14))
	for range 200 { // patches of few pages' headers and of anything
		var patches []byte
		for range 1 + rng.IntN(12) {
			at := rng.IntN(len(content))
			if rng.IntN(3) == 0 {
				at = at/512*512 + rng.IntN(12)
			}
			patches = append(patches, byte(at>>16), byte(at>>8), byte(at), byte(rng.Uint32()))
		}
		f.Add(patches)
	}
	f.Add([]byte{0, 2, 0, 0x0d})
	f.Add([]byte{0, 2, 3, 0xff, 0, 2, 4, 0xff})
	f.Add([]byte{0, 0, 20, 8})
	f.Add([]byte{0, 0, 59, 2})
	f.Add([]byte{0, 4, 8, 0xff, 1, 0, 12, 0x80})
	f.Add([]byte{0x30, 0x30, 0x30, 0x30, 0, 0, 55, 0x30}) // once read though SQLite missed a pointer map
	f.Fuzz(func(t *testing.T, patches []byte) {
		bad := bytes.Clone(content)
		for ; len(patches) >= 4; patches = patches[4:] {
			at := int(patches[0])<<16 | int(patches[1])<<8 | int(patches[2])
			bad[at%len(bad)] = patches[3]
		}
		path := filepath.Join(t.TempDir(), "x.sqlite")
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		_ = checkDamaged(t, path, "damaged")
	})
}
