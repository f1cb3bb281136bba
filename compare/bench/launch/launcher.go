package launch

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Variable is an environment variable of a launch. An empty value leaves it unset.
type Variable struct{ Name, Value string }

// Variables are the entries of a map, sorted by name.
func Variables(values map[string]string) []Variable {
	var variables []Variable
	for _, name := range slices.Sorted(maps.Keys(values)) {
		variables = append(variables, Variable{name, values[name]})
	}
	return variables
}

// Environ is base with the variables set, or removed where they have no value.
func Environ(base []string, variables []Variable) []string {
	env := slices.DeleteFunc(slices.Clone(base), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.ContainsFunc(variables, func(v Variable) bool { return v.Name == name })
	})
	for _, v := range variables {
		if v.Value != "" {
			env = append(env, v.Name+"="+v.Value)
		}
	}
	return env
}

// names lists the names of variables for a message.
func names(variables []Variable) string {
	list := make([]string, len(variables))
	for i, v := range variables {
		list[i] = v.Name
	}
	return strings.Join(list, ", ")
}

// PassOn adds variables to the command line of a launcher that might not pass its
// own environment on: mpirun, srun, docker and the like. A command that is no
// launcher, or one that inherits, is returned as it is. The warning says where a
// variable may still be lost.
//
// version is what the launcher prints for --version, empty if unknown; it tells
// Open MPI from MPICH, whose options differ.
func PassOn(words []string, variables []Variable, version string) (passed []string, warning string) {
	if len(words) == 0 || len(variables) == 0 {
		return words, ""
	}
	assign := func(flag string) []string {
		return options(variables, func(v Variable) []string { return []string{flag, v.Name + "=" + v.Value} })
	}
	switch name := launcherName(words); name {
	case "mpirun":
		if isHydra(words, version) {
			return insert(words, 1,
				options(variables, func(v Variable) []string { return []string{"-genv", v.Name, v.Value} })), ""
		}
		if filepath.Base(words[0]) == "mpiexec" && version == "" {
			warning = "cannot tell which MPI this mpiexec belongs to: the variable is passed with -x, as Open MPI expects"
		}
		return insert(words, 1, assign("-x")), warning
	case "srun":
		return exportSlurm(words, variables)
	case "docker", "podman", "nerdctl":
		at := slices.IndexFunc(words, func(w string) bool { return w == "run" || w == "exec" })
		if at >= 0 {
			return insert(words, at+1, assign("-e")), ""
		}
		fallthrough
	case "ssh", "sudo", "kubectl", "sbatch", "qsub", "bsub", "ray":
		return words, fmt.Sprintf("%s may not pass %s on to what it starts: check the proof of each rank", name,
			names(variables))
	case "trtllm-bench", "trtllm-serve":
		return words, "TensorRT-LLM passes only variables that begin with TRTLLM or TLLM to the ranks it spawns: where a " +
			"rank prints no proof line, put mpirun -n RANKS trtllm-llmapi-launch before " + name
	}
	if nested := nestedLauncher(words); nested != "" {
		return words, fmt.Sprintf(
			"%s is started by %s and is not given %s: pass it there, or the proof of some ranks may be missing", nested,
			filepath.Base(words[0]), names(variables))
	}
	return words, ""
}

// LauncherVersion is what mpirun or mpiexec prints for --version, which tells Open
// MPI from MPICH; "" for other programs, and for one that does not say.
func LauncherVersion(name string) string {
	if base := filepath.Base(name); base != "mpirun" && base != "mpiexec" {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	out, _ := exec.CommandContext(ctx, name, "--version").Output() // a launcher that refuses says nothing: unknown
	return string(out)
}

// options writes the variables that have a value as words of a command.
func options(variables []Variable, option func(Variable) []string) []string {
	var words []string
	for _, v := range variables {
		if v.Value != "" {
			words = append(words, option(v)...)
		}
	}
	return words
}

// isHydra reports whether an mpirun or mpiexec is MPICH's or Intel's.
func isHydra(words []string, version string) bool {
	if version != "" {
		return strings.Contains(version, "HYDRA") || strings.Contains(version, "Intel(R) MPI")
	}
	return slices.ContainsFunc(words, func(w string) bool { return w == "-genv" || w == "-genvall" || w == "-ppn" })
}

// exportSlurm adds the variables to srun's --export, keeping what the user put
// there. Without the option srun exports everything; ALL says so even where
// SLURM_EXPORT_ENV says otherwise.
func exportSlurm(words []string, variables []Variable) (passed []string, warning string) {
	pairs := options(variables, func(v Variable) []string { return []string{v.Name + "=" + v.Value} })
	if len(pairs) == 0 {
		return words, ""
	}
	for _, pair := range pairs {
		if strings.Contains(pair, ",") {
			return words, "srun cannot pass a value with a comma: " + pair
		}
	}
	list := strings.Join(pairs, ",")
	passed = slices.Clone(words)
	for i, w := range passed[:programAt(words)] {
		if w == "--export" && i+1 < len(passed) {
			passed[i+1] = exported(passed[i+1], list)
			return passed, ""
		}
		if given, ok := strings.CutPrefix(w, "--export="); ok {
			passed[i] = "--export=" + exported(given, list)
			return passed, ""
		}
	}
	return insert(words, 1, []string{"--export=ALL," + list}), ""
}

// exported is the value of --export with the list added. NONE cannot stand
// beside names.
func exported(given, list string) string {
	if given == "NONE" || given == "NIL" || given == "" {
		return list
	}
	return given + "," + list
}

func insert(words []string, at int, more []string) []string {
	return slices.Insert(slices.Clone(words), at, more...)
}
