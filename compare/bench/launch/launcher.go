package launch

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// Environ is base with the variables set, or removed where their value is empty.
func Environ(base []string, variables map[string]string) []string {
	env := slices.DeleteFunc(slices.Clone(base), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		_, own := variables[name]
		return own
	})
	return append(env, assigned(variables)...)
}

// assigned are the variables that have a value, as NAME=VALUE, by name.
func assigned(variables map[string]string) (words []string) {
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		if variables[name] != "" {
			words = append(words, name+"="+variables[name])
		}
	}
	return words
}

// profilerHere stands, in a command, before the program that a remote launcher starts: where variables and the
// profiler go.
const profilerHere = "{nsys}"

// PassOn puts variables into the command line of a launcher that might not pass its own environment on to the ranks:
// behind the launcher's options, or where profilerHere stands. Any other command inherits them, and is returned as
// it is. The warning says where a variable may still be lost.
// Every command gets the wrapper, behind the variables.
//
//	mpirun -n 8 prog, A=1 → mpirun -n 8 env A=1 prog
func PassOn(words []string, variables map[string]string, wrapper ...string) (passed []string, warning string) {
	at, name := programAt(words), launcherName(words)
	here := slices.Index(words, profilerHere)
	if here >= 0 {
		at, words = here, slices.Delete(slices.Clone(words), here, here+1)
	}
	if set := assigned(variables); len(set) > 0 && at > 0 {
		wrapper = slices.Concat([]string{"env"}, set, wrapper)
	}
	switch tensorRT := name == "trtllm-bench" || name == "trtllm-serve"; {
	case len(variables) == 0 || here >= 0:
	case slices.Contains(remoteLaunchers, name):
		warning = fmt.Sprintf("%s may not pass %s on to what it starts: put %s before that program", name,
			strings.Join(slices.Sorted(maps.Keys(variables)), ", "), profilerHere)
	case tensorRT:
		warning = "TensorRT-LLM passes only variables that begin with TRTLLM or TLLM to the ranks it spawns: where a " +
			"rank prints no proof line, put mpirun -n RANKS trtllm-llmapi-launch before " + name
	}
	return slices.Insert(slices.Clone(words), at, wrapper...), warning
}

// remoteLaunchers start their program as no descendant of theirs.
var remoteLaunchers = []string{"docker", "podman", "nerdctl", "ssh", "sudo", "kubectl", "sbatch", "qsub", "bsub", "ray"}

// launcherName is the name of the program that a command starts, without its
// folder; Open MPI's and MPICH's other names for mpirun become mpirun.
func launcherName(words []string) string {
	name := filepath.Base(strings.Join(words[:min(1, len(words))], ""))
	if slices.Contains([]string{"mpiexec", "orterun", "prun"}, name) {
		return "mpirun"
	}
	return name
}

// optionValues are the options of launchers, without dashes, that take the following
// words as values: one, or after the bar two. All others stand alone or hold their value
// after "=".
var optionValues = map[string]string{
	"mpirun": ` n np c N npernode npersocket x H host hostfile machinefile f hosts ppn perhost map-by bind-to rank-by wdir
		wd cpu-set cpus-per-rank timeout app path tune am iface bootstrap launcher configfile genvlist envlist
		output-filename output display prefix rankfile rf personality stdin | mca gmca pmixmca prtemca genv env `,
	"srun": ` n N p A t J o e w x c G D q m C d i L M r S T W B b account begin cluster-constraint clusters comment
		constraint container-env container-image container-mounts container-name container-workdir core-spec cores-per-socket
		cpu-bind cpu-freq cpus-per-gpu cpus-per-task deadline delay-boot dependency distribution epilog error exclude
		export export-file extra-node-info gpu-bind gpu-freq gpus gpus-per-node gpus-per-socket gpus-per-task gres
		gres-flags hint input jobid job-name licenses mail-type mail-user mem mem-bind mem-per-cpu mem-per-gpu mpi network
		nodefile nodelist nodes ntasks ntasks-per-core ntasks-per-gpu ntasks-per-node ntasks-per-socket open-mode output
		partition power priority profile prolog qos relative reservation signal sockets-per-node switches task-epilog
		task-prolog thread-spec threads threads-per-core time time-min tmp tres-bind tres-per-task uid wait wckey chdir | `,
}

// programAt is the index of the program in a command: after mpirun or srun and
// their options, or 0.
func programAt(words []string) int {
	one, two, _ := strings.Cut(optionValues[launcherName(words)], "|")
	if one == "" {
		return 0
	}
	for i := 1; i < len(words); i++ {
		if words[i] == "--" {
			return min(i+1, len(words))
		}
		if !strings.HasPrefix(words[i], "-") {
			return i
		}
		switch name := strings.TrimLeft(words[i], "-"); {
		case slices.Contains(strings.Fields(one), name):
			i++
		case slices.Contains(strings.Fields(two), name):
			i += 2
		}
	}
	return len(words)
}

// Program is the program or Python module that a command runs, behind its launcher and env:
//
//	mpirun -n 8 env A=1 python3 -m vllm.entrypoints.openai.api_server → vllm
func Program(words []string) string {
	words = words[min(programAt(words), len(words)):]
	for len(words) > 1 && (filepath.Base(words[0]) == "env" || strings.Contains(words[0], "=")) {
		words = words[1:]
	}
	if len(words) > 2 && strings.HasPrefix(filepath.Base(words[0]), "python") && words[1] == "-m" {
		module, _, _ := strings.Cut(words[2], ".")
		return module
	}
	if len(words) == 0 {
		return ""
	}
	return filepath.Base(words[0])
}
