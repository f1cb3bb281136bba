package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// exportFolder is a folder with links to exports of one or both arms, and what else lies
// beside exports: notes, logs, hidden files, reports of which the export is there, and
// second names.
func exportFolder(t *testing.T, arms ...string) string {
	t.Helper()
	home, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for _, arm := range arms {
		for _, rank := range []string{"0", "1"} {
			name := arm + ".rank" + rank + ".sqlite"
			if err := os.Symlink(filepath.Join(home, "testdata/gptoss-ep4-ranks", name),
				filepath.Join(folder, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, name := range []string{"info.json", "README", "run.log", ".DS_Store", arms[0] + ".rank0.nsys-rep"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(`{"a": 1}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(arms[0]+".rank1.sqlite", filepath.Join(folder, "latest.sqlite")); err != nil {
		t.Fatal(err)
	}
	return folder
}

func TestFolderWithForeignFiles(t *testing.T) {
	t.Chdir("../..")
	ranks := "testdata/gptoss-ep4-ranks/normal.rank"
	want, _, _ := runIn(t, "trace", ranks+"0.sqlite", ranks+"1.sqlite")
	folder := exportFolder(t, "normal")
	have, errs, code := runIn(t, "trace", folder)
	if says := "skipped in " + folder +
		": README, info.json, latest.sqlite, normal.rank0.nsys-rep, run.log\n"; code != exitDone || have != want ||
		errs != says {
		t.Errorf("exit %d, %q, want %q", code, errs, says)
	}
	for _, name := range []string{"info.json", "README"} {
		if out, errs, code := runIn(t, "trace", filepath.Join(folder, name)); code != exitFailed || out != "" ||
			!strings.Contains(errs, "want ") {
			t.Errorf("%s by name: exit %d, %q", name, code, errs)
		}
	}
	if _, errs, code := runIn(t, "compare", folder); code != exitUsage ||
		!strings.Contains(errs, "has perfect in its name") {
		t.Errorf("one arm: exit %d, %q", code, errs)
	}
}

func TestFolderOfBothArms(t *testing.T) {
	t.Chdir("../..")
	names := "testdata/gptoss-ep4-ranks/"
	want, _, _ := runIn(t, "compare", names+"normal.rank[01].sqlite", names+"perfect.rank[01].sqlite")
	folder := exportFolder(t, "normal", "perfect")
	if have, errs, code := runIn(t, "compare", folder); code != exitDone || have != want ||
		!strings.Contains(errs, "skipped in ") {
		t.Errorf("compare: exit %d, %s\n%s\nwant\n%s", code, errs, have, want)
	}
	if _, errs, code := runIn(t, "trace", folder); code != exitNotComparable ||
		!strings.Contains(errs, "compare them with: moebalance compare "+folder+";") {
		t.Errorf("trace: exit %d, %q", code, errs)
	}
	split := t.TempDir()
	for _, arm := range []string{"normal", "perfect"} {
		if err := os.Symlink(exportFolder(t, arm), filepath.Join(split, "run-"+arm)); err != nil {
			t.Fatal(err)
		}
	}
	if have, errs, code := runIn(t, "compare", split); code != exitDone || have != want {
		t.Errorf("folders of the arms: exit %d, %s\n%s", code, errs, have)
	}
}
