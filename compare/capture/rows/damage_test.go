package rows

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/moebalance/moebalance/testdata/require"
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
	return require.Value(os.ReadFile(path))
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
	for n := 1; n < len(content)/512; n++ { // trees that bite their own tail, and pages that stand in for others
		if content[512*n] == branchPage {
			for _, to := range []byte{0, 1, 2, byte(n + 1), byte(rng.IntN(len(content) / 512)), 0xff} {
				at := 512*n + 8 + 3 // the last byte of the rightmost child
				f.Add([]byte{byte(at >> 16), byte(at >> 8), byte(at), to})
			}
		}
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
		require.NoError(t, os.WriteFile(path, bad, 0o600))
		_ = checkDamaged(t, path, "damaged")
	})
}
