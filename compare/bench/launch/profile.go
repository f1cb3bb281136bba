package launch

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Profile says how a command is put under Nsight Systems: the switches that the
// TensorRT-LLM and vLLM performance pages use, one report per rank.
type Profile struct {
	Nsys string `flag:"nsys" preset:"nsys"` // the program; "nsys" where empty
	// Windows are the iterations to record, "A-B" or several with commas between,
	// as TLLM_PROFILE_START_STOP takes them. Empty records the whole run.
	Windows   string   `flag:"iterations"`
	Arguments []string `flag:"nsys-arg"` // further options of nsys, which override ours
	// Set are further variables of the command, such as the switch of an arm.
	Set map[string]string
	// Rank is the only rank to profile; negative profiles every rank.
	Rank int `flag:"rank" preset:"-1"`
	// Variable is the one by which the command takes windows, where that is not TLLM_PROFILE_START_STOP.
	Variable string
	Folder   string // for the reports
}

// startStops are the variables by which TensorRT-LLM's older C++ benchmarks take iterations, as lists
// ("0,63,127") whose every entry begins or ends a capture. Others take TLLM_PROFILE_START_STOP.
var startStops = map[string]string{
	"gptManagerBenchmark": "TLLM_GPTM_PROFILE_START_STOP",
	"gptSessionBenchmark": "TLLM_GPTS_PROFILE_START_STOP",
}

// ReadWindows reads windows, and the variable by which a command takes them: one that stands before them, or the one
// of an older benchmark among its words.
//
//	"TLLM_GPTM_PROFILE_START_STOP=0,63", a script → TLLM_GPTM_PROFILE_START_STOP and 0,63
func ReadWindows(text string, words []string) (variable, windows string) {
	if variable, windows, named := strings.Cut(text, "="); named {
		return variable, windows
	}
	for _, w := range words {
		if variable = startStops[filepath.Base(w)]; variable != "" {
			break
		}
	}
	return variable, text
}

// Check reports what is wrong with p.
func (p Profile) Check() error {
	if p.Variable != "" && !VariableName.MatchString(p.Variable) {
		return fmt.Errorf("%q cannot be the name of an environment variable", p.Variable)
	}
	if p.Rank < -1 {
		return fmt.Errorf("--rank %d: want a rank, or -1 for all", p.Rank)
	}
	for w := range strings.SplitSeq(p.Windows, ",") {
		from, to, ranged := strings.Cut(w, "-")
		a, errA := strconv.ParseUint(from, 10, 63)
		b, errB := strconv.ParseUint(to, 10, 63)
		if p.Windows != "" && (errA != nil || ranged && (errB != nil || b < a)) {
			return fmt.Errorf("iterations %q: want A-B, the first before the last, or several with commas between, such as "+
				"100-150", p.Windows)
		}
	}
	return nil
}

// Variables are what the environment of the profiled command needs.
func (p Profile) Variables() map[string]string {
	v := map[string]string{
		"TLLM_NVTX_DEBUG":         "1", // ranges inside the executor
		"TLLM_PROFILE_RECORD_GC":  "1",
		"TLLM_LLMAPI_ENABLE_NVTX": "1",
		// else nsys that traces MPI waits for ranks that it does not profile
		"NSYS_MPI_STORE_TEAMS_PER_RANK": "1",
	}
	if p.Windows != "" {
		v[cmp.Or(p.Variable, "TLLM_PROFILE_START_STOP")] = p.Windows
	}
	maps.Copy(v, p.Set)
	return v
}

// wrap is the command under the profiler, its reports in the folder as
// report.rank<R>.nsys-rep and .sqlite. The rank is what Open MPI, MPICH or Slurm
// told the process; without any of them it is 0.
func (p Profile) wrap(words []string) []string {
	words, _ = PassOn(words, p.Variables(), "sh", "-c", p.script(), "moebalance-profile")
	return words
}

// CheckProfilable fails where wrap cannot find where the profiler goes: in front of
// a program that hands the work to a daemon or to another machine it would record
// nothing.
func CheckProfilable(words []string) error {
	if name := launcherName(words); slices.Contains(remoteLaunchers, name) && !slices.Contains(words, profilerHere) {
		return fmt.Errorf("nsys cannot follow %s to the program it starts: add %s as a word of the command, before that "+
			"program", name, profilerHere)
	}
	return nil
}

// script runs in each rank's place and becomes the profiler, or the command
// itself on ranks that are not profiled.
func (p Profile) script() string {
	text := `rank="${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${SLURM_PROCID:-${PMIX_RANK:-0}}}}"; `
	if p.Rank >= 0 {
		text += fmt.Sprintf(`[ "$rank" = %d ] || exec "$@"; `, p.Rank)
	}
	report := Quote([]string{filepath.Join(p.Folder, "report.rank")})
	return text + fmt.Sprintf(`exec %s -o %s"$rank" "$@"`, Quote(p.nsys()), report)
}

// nsys is the profiler with its switches.
func (p Profile) nsys() []string {
	words := []string{cmp.Or(p.Nsys, "nsys"), "profile", "-f", "true", "-t", "cuda,nvtx", "--cuda-graph-trace", "node",
		"--trace-fork-before-exec=true", "--export=sqlite"}
	if p.Windows != "" {
		end := "stop"
		if n := strings.Count(p.Windows, ",") + 1; n > 1 {
			end = fmt.Sprintf("repeat:%d", n)
		}
		if p.Variable != "" { // entries of its list pair up to ranges of which nsys need not know the number
			end = "repeat[]"
		}
		words = append(words, "-c", "cudaProfilerApi", "--capture-range-end="+end)
	}
	return append(words, p.Arguments...)
}

// Script is the profiled command as a shell script that can be read, changed
// and run by hand.
func (p Profile) Script(words []string) string {
	text, variables := "#!/bin/sh\n# The command under Nsight Systems, one report per rank.\n", p.Variables()
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		text += fmt.Sprintf("export %s=%s\n", name, Quote([]string{variables[name]}))
	}
	return text + fmt.Sprintf("mkdir -p %s\nexec %s\n", Quote([]string{p.Folder}), Quote(p.wrap(words)))
}
