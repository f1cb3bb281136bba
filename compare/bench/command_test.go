package bench

import (
	"reflect"
	"strings"
	"testing"
)

func TestWords(t *testing.T) {
	for line, want := range map[string][]string{
		``:                           nil,
		`  a  b	c `:                  {"a", "b", "c"},
		`python 'a b' "c d"`:         {"python", "a b", "c d"},
		`a'b'"c"d`:                   {"abcd"},
		`'' ""`:                      {"", ""},
		`a\ b \'`:                    {"a b", "'"},
		`"a\"b\\c\n"`:                {`a"b\c\n`},
		`'a\b'`:                      {`a\b`},
		`--export=ALL,A=1 $HOME *.x`: {"--export=ALL,A=1", "$HOME", "*.x"},
	} {
		got, err := Words(line)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("Words(%q) = %q, %v; want %q", line, got, err, want)
		}
	}
	for _, line := range []string{`'a`, `"a`, `a\`} {
		if _, err := Words(line); err == nil {
			t.Errorf("Words(%q) passed", line)
		}
	}
}

// What Quote writes, Words reads back.
func FuzzQuoteWords(f *testing.F) {
	f.Add("a b\x00it's\x00\"x\\\x00")
	f.Add("--opt=1\x00$(rm)\x00\n")
	f.Fuzz(func(t *testing.T, joined string) {
		words := strings.Split(strings.ToValidUTF8(joined, "?"), "\x00")
		got, err := Words(Quote(words))
		if err != nil || !reflect.DeepEqual(got, words) {
			t.Fatalf("%q became %q, %v", words, got, err)
		}
	})
}

func FuzzWords(f *testing.F) {
	f.Add(`a 'b c' "d\"e" \f`)
	f.Fuzz(func(t *testing.T, line string) {
		words, err := Words(line)
		if err != nil {
			return
		}
		again, err := Words(Quote(words))
		if err != nil || len(again) != len(words) {
			t.Fatalf("%q gave %q, and that %q, %v", line, words, again, err)
		}
	})
}

func TestPlaceholders(t *testing.T) {
	p := place{Launch{Position: 3, Pair: 1, Arm: Perfect}, "/c/out"}
	got := p.fill([]string{"run", "--arm={arm}", "{launch}-{pair}", "{out}/r.json", "{other}"})
	want := []string{"run", "--arm=perfect", "3-1", "/c/out/r.json", "{other}"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("filled to %q, want %q", got, want)
	}
}

func TestCarry(t *testing.T) {
	trtllm, _ := ParseTreatment("trtllm")
	vllm, _ := ParseTreatment("vllm")
	for _, c := range []struct {
		line    string
		t       Treatment
		arm     Arm
		version string
		want    string
		warns   bool
	}{
		{"trt-tool -x", trtllm, Perfect, "", "trt-tool -x", false},
		{"mpirun -n 4 prog", trtllm, Perfect, "mpirun (Open MPI) 4.1.6", "mpirun -x ENABLE_PERFECT_ROUTER=1 -n 4 prog", false},
		{"mpirun -n 4 prog", trtllm, Normal, "", "mpirun -x ENABLE_PERFECT_ROUTER=0 -n 4 prog", false},
		{"mpiexec -n 4 prog", trtllm, Perfect, "HYDRA build details:", "mpiexec -genv ENABLE_PERFECT_ROUTER 1 -n 4 prog", false},
		{"mpiexec -ppn 2 prog", trtllm, Perfect, "", "mpiexec -genv ENABLE_PERFECT_ROUTER 1 -ppn 2 prog", false},
		{"mpiexec -n 2 prog", trtllm, Perfect, "", "mpiexec -x ENABLE_PERFECT_ROUTER=1 -n 2 prog", true},
		// A treatment without a value for "off" leaves the variable out.
		{"mpirun prog", vllm, Normal, "", "mpirun prog", false},
		{"/usr/bin/srun -N 1 prog", trtllm, Perfect, "", "/usr/bin/srun --export=ALL,ENABLE_PERFECT_ROUTER=1 -N 1 prog", false},
		{"srun --export=NONE prog", trtllm, Perfect, "", "srun --export=ENABLE_PERFECT_ROUTER=1 prog", false},
		{"srun --export ALL,A=1 prog", trtllm, Normal, "", "srun --export ALL,A=1,ENABLE_PERFECT_ROUTER=0 prog", false},
		// The program's own --export is left alone.
		{"srun prog --export=x", trtllm, Perfect, "", "srun --export=ALL,ENABLE_PERFECT_ROUTER=1 prog --export=x", false},
		{"srun -N 2 --label prog --export=x", trtllm, Perfect, "", "srun --export=ALL,ENABLE_PERFECT_ROUTER=1 -N 2 --label prog --export=x", false},
		{"srun --mpi pmix --export A=1 prog", trtllm, Perfect, "", "srun --mpi pmix --export A=1,ENABLE_PERFECT_ROUTER=1 prog", false},
		{"numactl -N 0 mpirun prog", trtllm, Perfect, "", "numactl -N 0 mpirun prog", true},
		{"bash -c '/opt/bin/srun prog'", trtllm, Perfect, "", "bash -c '/opt/bin/srun prog'", true},
		{"apptainer exec --nv x.sif prog", trtllm, Perfect, "", "apptainer exec --nv x.sif prog", false},
		{"apptainer exec --cleanenv x.sif prog", trtllm, Perfect, "", "apptainer exec --cleanenv x.sif prog", true},
		{"docker run --rm image prog", trtllm, Perfect, "", "docker run -e ENABLE_PERFECT_ROUTER=1 --rm image prog", false},
		{"docker compose up", trtllm, Perfect, "", "docker compose up", true},
		{"ssh host prog", trtllm, Perfect, "", "ssh host prog", true},
		{"env -i prog", trtllm, Perfect, "", "env -i prog", true},
		{"env A=1 prog", trtllm, Perfect, "", "env A=1 prog", false},
		{"trtllm-bench throughput", trtllm, Perfect, "", "trtllm-bench throughput", true},
	} {
		words, err := Words(c.line)
		if err != nil {
			t.Fatal(err)
		}
		got, warning := carry(words, c.t, c.arm, c.version)
		if Quote(got) != c.want || (warning != "") != c.warns {
			t.Errorf("carry(%q, %s) = %q, warning %q; want %q", c.line, c.arm, Quote(got), warning, c.want)
		}
		if Quote(words) != c.line && !strings.Contains(c.line, "'") {
			t.Errorf("carry changed its argument %q to %q", c.line, Quote(words))
		}
	}
}

func TestTreatments(t *testing.T) {
	own, err := ParseTreatment("env:MY_SWITCH=on=1")
	if err != nil || own.Perfect["MY_SWITCH"] != "on=1" {
		t.Errorf("env:MY_SWITCH=on=1 gave %+v, %v", own, err)
	}
	for _, s := range []string{"", "tensorrt", "env:", "env:A", "env:=1"} {
		if _, err := ParseTreatment(s); err == nil {
			t.Errorf("treatment %q passed", s)
		}
	}
	for _, s := range []string{"env:A B=1", "env:1A=1", "env:A="} {
		if treatment, err := ParseTreatment(s); err == nil && treatment.Check() == nil {
			t.Errorf("treatment %q passed", s)
		}
	}
	trtllm, _ := ParseTreatment("trtllm")
	base := []string{"PATH=/bin", "ENABLE_PERFECT_ROUTER=1", "X=2"}
	if got := trtllm.Environ(base, Normal); !reflect.DeepEqual(got, []string{"PATH=/bin", "X=2"}) {
		t.Errorf("the normal arm's environment is %q", got)
	}
	if got := trtllm.Environ(base, Perfect); !reflect.DeepEqual(got, []string{"PATH=/bin", "X=2", "ENABLE_PERFECT_ROUTER=1"}) {
		t.Errorf("the perfect arm's environment is %q", got)
	}
}

func TestSpecCheck(t *testing.T) {
	good := func() Spec {
		trtllm, _ := ParseTreatment("trtllm")
		return Spec{Design: Design{Pairs: 6, Order: ABBA}, Treatment: trtllm, Command: Command{Normal: []string{"x"}},
			Threshold: 0.1, Confidence: 0.95}
	}
	if err := good().Check(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Spec){
		"no command":           func(s *Spec) { s.Command.Normal = nil },
		"sets it itself":       func(s *Spec) { s.Command.Normal = []string{"mpirun", "-x", "ENABLE_PERFECT_ROUTER=1", "x"} },
		"server without ready": func(s *Spec) { s.Command.Server = []string{"s"} },
		"ready without server": func(s *Spec) { s.Command.Ready = "http://x" },
		"ready without scheme": func(s *Spec) {
			s.Command.Server, s.Command.Ready = []string{"s"}, "localhost:8000/health"
		},
		"profiled in docker": func(s *Spec) {
			s.Design.Profiled, s.Profile, s.Command.Normal = true, &Profile{GraphTrace: "node"}, []string{"docker", "run", "image", "prog"}
		},
		"confidence":            func(s *Spec) { s.Confidence = 1 },
		"tolerance":             func(s *Spec) { s.WorkTolerance = -1 },
		"retries":               func(s *Spec) { s.Retries = -1 },
		"proof line":            func(s *Spec) { s.Treatment.Line = "(" },
		"metric rule":           func(s *Spec) { s.Custom = []string{"x=("} },
		"cap below first look":  func(s *Spec) { s.Design.UntilDecided, s.Design.Pairs = true, 4 },
		"profiled without how":  func(s *Spec) { s.Design.Profiled = true },
		"negative time":         func(s *Spec) { s.Timeout = -1 },
		"shared result":         func(s *Spec) { s.Output = "report.json" },
		"shared counts":         func(s *Spec) { s.Counts = "/counts" },
		"negative ranks":        func(s *Spec) { s.Ranks = -1 },
		"how without profiling": func(s *Spec) { s.Profile = &Profile{GraphTrace: "node"} },
	} {
		s := good()
		spoil(&s)
		if s.Check() == nil {
			t.Errorf("%s: passed", name)
		}
	}
}
