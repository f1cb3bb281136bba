package dataset

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"strings"
	"testing"
)

func TestDataset(t *testing.T) {
	d := Spec{Requests: 2000, InputMean: 100, InputSD: 20, OutputMean: 50, OutputSD: 0, LowID: 10, HighID: 20,
		Seed: 1}
	var out bytes.Buffer
	sum, err := d.Write(&out)
	if err != nil {
		t.Fatal(err)
	}
	hash := sha256.Sum256(out.Bytes())
	if sum.SHA256 != hex.EncodeToString(hash[:]) || sum.Bytes != int64(out.Len()) {
		t.Errorf("summary %+v does not fit the bytes", sum)
	}
	var n, total, squares, outputs float64
	ids := make(map[int]int)
	for line := range strings.Lines(out.String()) {
		var r struct {
			TaskID       int   `json:"task_id"`
			InputIDs     []int `json:"input_ids"`
			OutputTokens int   `json:"output_tokens"`
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if r.TaskID != int(n) || len(r.InputIDs) < 1 || r.OutputTokens != 50 {
			t.Fatalf("line %v is %+v", n, r)
		}
		n++
		total += float64(len(r.InputIDs))
		squares += float64(len(r.InputIDs)) * float64(len(r.InputIDs))
		outputs += float64(r.OutputTokens)
		for _, id := range r.InputIDs {
			ids[id]++
		}
	}
	if n != 2000 || int64(total) != sum.InputTokens || int64(outputs) != sum.OutputTokens {
		t.Errorf("%v lines with %v and %v tokens, summary %+v", n, total, outputs, sum)
	}
	// ⌈x⌉ adds half a token to the mean on average: 100.5 ± 4·20/√2000.
	mean := total / n
	if sd := math.Sqrt(squares/n - mean*mean); math.Abs(mean-100.5) > 1.8 || math.Abs(sd-20) > 1.3 {
		t.Errorf("lengths have mean %v and deviation %v, want 100.5 and 20", mean, sd)
	}
	// Ten ids of equal chance, about 20,000 times each: within five deviations.
	if len(ids) != 10 {
		t.Errorf("%d different ids, want 10", len(ids))
	}
	for id, times := range ids {
		if want := total / 10; id < 10 || id > 19 || math.Abs(float64(times)-want) > 5*math.Sqrt(want) {
			t.Errorf("id %d drawn %d times, want about %v", id, times, want)
		}
	}
	var again bytes.Buffer
	if _, err := d.Write(&again); err != nil || !bytes.Equal(out.Bytes(), again.Bytes()) {
		t.Errorf("the same data set has other bytes (%v)", err)
	}
}

// The bytes of a seed are a promise: other machines and versions have the same.
func TestDatasetBytes(t *testing.T) {
	var out bytes.Buffer
	if _, err := (Spec{Requests: 2, InputMean: 3, InputSD: 1, OutputMean: 2, LowID: 5, HighID: 9, Seed: 1}).Write(
		&out); err != nil {
		t.Fatal(err)
	}
	const want = `{"task_id":0,"input_ids":[7,6,5,7],"output_tokens":2}` + "\n" +
		`{"task_id":1,"input_ids":[7,5,6,5],"output_tokens":2}` + "\n"
	if out.String() != want {
		t.Errorf("wrote\n%s\nwant\n%s", out.String(), want)
	}
}

// Prompts do not change with the output lengths.
func TestDatasetStreams(t *testing.T) {
	prompts := func(d Spec) (all []string) {
		var out bytes.Buffer
		if _, err := d.Write(&out); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			prompt, _, _ := strings.Cut(line, `,"output_tokens"`)
			all = append(all, prompt)
		}
		return all
	}
	d := Spec{Requests: 50, InputMean: 8, InputSD: 4, OutputMean: 2, LowID: 0, HighID: 1000, Seed: 9}
	a := prompts(d)
	d.OutputMean, d.OutputSD = 300, 100
	if b := prompts(d); strings.Join(a, "\n") != strings.Join(b, "\n") {
		t.Error("other output lengths changed the prompts")
	}
	d.Seed = 10
	if b := prompts(d); strings.Join(a, "\n") == strings.Join(b, "\n") {
		t.Error("another seed gave the same prompts")
	}
}

func TestDatasetCheck(t *testing.T) {
	good := Spec{Requests: 1, InputMean: 1, OutputMean: 1, HighID: 1}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Spec){
		"requests": func(d *Spec) { d.Requests = 0 }, "mean": func(d *Spec) { d.InputMean = 0.5 },
		"nan": func(d *Spec) { d.OutputMean = math.NaN() }, "deviation": func(d *Spec) { d.OutputSD = -1 },
		"ids": func(d *Spec) { d.HighID = 0 }, "low id": func(d *Spec) { d.LowID = -1 },
	} {
		d := good
		spoil(&d)
		if d.Check() == nil {
			t.Errorf("%s: passed", name)
		}
	}
}
