package bench

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// carry puts the treatment's variables into the command line of a launcher that
// might not hand its own environment on: mpirun, srun, docker and the like. A
// command that is no launcher, or one that inherits, is returned as it is. The
// warning says where a variable may still be lost.
//
// version is what the launcher prints for --version, empty if unknown; it tells
// Open MPI from MPICH, whose options differ.
func carry(words []string, t Treatment, arm Arm, version string) (carried []string, warning string) {
	if len(words) == 0 || len(t.Perfect) == 0 {
		return words, ""
	}
	switch name := launcherName(words); name {
	case "mpirun":
		if isHydra(words, version) {
			return insert(words, 1, t.options(arm, func(name, value string) []string { return []string{"-genv", name, value} })), ""
		}
		if filepath.Base(words[0]) == "mpiexec" && version == "" {
			warning = "cannot tell which MPI this mpiexec belongs to: the variable is passed with -x, as Open MPI wants it"
		}
		return insert(words, 1, t.options(arm, func(name, value string) []string { return []string{"-x", name + "=" + value} })), warning
	case "srun":
		return exportSlurm(words, t, arm)
	case "docker", "podman", "nerdctl":
		at := slices.IndexFunc(words, func(w string) bool { return w == "run" || w == "exec" })
		if at < 0 {
			return words, fmt.Sprintf("%s without run or exec: %s may not reach the container", name, strings.Join(t.Names(), ", "))
		}
		return insert(words, at+1, t.options(arm, func(name, value string) []string { return []string{"-e", name + "=" + value} })), ""
	case "ssh", "sudo", "kubectl", "sbatch", "qsub", "bsub", "ray":
		return words, fmt.Sprintf("%s may not hand %s on to what it starts: the proof per rank will tell", name, strings.Join(t.Names(), ", "))
	case "env":
		if slices.Contains(words, "-i") || slices.Contains(words, "-") || slices.Contains(words, "--ignore-environment") {
			return words, "env -i drops " + strings.Join(t.Names(), ", ")
		}
	case "apptainer", "singularity":
		if slices.ContainsFunc(words, func(w string) bool { return w == "--cleanenv" || w == "--containall" }) {
			return words, name + " --cleanenv drops " + strings.Join(t.Names(), ", ")
		}
	case "trtllm-bench", "trtllm-serve":
		return words, "ranks that TensorRT-LLM spawns by itself are only promised variables that begin with TRTLLM or TLLM: the proof per rank will tell"
	}
	if hidden := hiddenLauncher(words); hidden != "" {
		return words, fmt.Sprintf("%s stands behind %s and is not given %s: pass it there, or the proof per rank may be missing", hidden, filepath.Base(words[0]), strings.Join(t.Names(), ", "))
	}
	return words, ""
}

// LauncherVersion is what mpirun or mpiexec prints for --version, which tells
// whose it is; "" for other programs, and for one that does not say.
func LauncherVersion(name string) string {
	if base := filepath.Base(name); base != "mpirun" && base != "mpiexec" {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	out, _ := exec.CommandContext(ctx, name, "--version").Output() // one that refuses says nothing: unknown
	return string(out)
}

// version is LauncherVersion, asked once in a session.
func (r *runner) version(name string) string {
	text, known := r.versions[name]
	if !known {
		text = LauncherVersion(name)
		r.versions[name] = text
	}
	return text
}

// options are the launcher's words for each variable of the arm: its value in
// the perfect arm, Off in the normal one unless that is empty.
func (t Treatment) options(arm Arm, option func(name, value string) []string) []string {
	var words []string
	for _, name := range t.Names() {
		value := t.Perfect[name]
		if arm == Normal {
			if t.Off == "" {
				continue
			}
			value = t.Off
		}
		words = append(words, option(name, value)...)
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
// there. Without the option srun exports everything; said aloud it also holds
// where SLURM_EXPORT_ENV says otherwise.
func exportSlurm(words []string, t Treatment, arm Arm) (carried []string, warning string) {
	pairs := t.options(arm, func(name, value string) []string { return []string{name + "=" + value} })
	if len(pairs) == 0 {
		return words, ""
	}
	for _, pair := range pairs {
		if strings.Contains(pair, ",") {
			return words, "srun cannot pass a value with a comma: " + pair
		}
	}
	list := strings.Join(pairs, ",")
	carried = slices.Clone(words)
	for i, w := range carried[:programAt(words)] {
		if w == "--export" && i+1 < len(carried) {
			carried[i+1] = exported(carried[i+1], list)
			return carried, ""
		}
		if given, ok := strings.CutPrefix(w, "--export="); ok {
			carried[i] = "--export=" + exported(given, list)
			return carried, ""
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
