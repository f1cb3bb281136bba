package launch

import (
	"path/filepath"
	"slices"
	"strings"
)

// launcherName is the name of the program that a command starts, without its
// folder; Open MPI's and MPICH's other names for mpirun become mpirun.
func launcherName(words []string) string {
	if len(words) == 0 {
		return ""
	}
	switch name := filepath.Base(words[0]); name {
	case "mpiexec", "orterun", "prun":
		return "mpirun"
	default:
		return name
	}
}

// optionValues are the options of launchers, without dashes, that take the following
// words as values, and how many. All others stand alone or hold their value
// after "=".
var optionValues = map[string]map[string]int{
	"mpirun": valueCounts(`
		n np c N npernode npersocket x H host hostfile machinefile f hosts ppn perhost map-by bind-to rank-by wdir wd
		cpu-set cpus-per-rank timeout app path tune am iface bootstrap launcher configfile genvlist envlist
		output-filename output display prefix rankfile rf personality stdin`, `
		mca gmca pmixmca prtemca genv env`),
	"srun": valueCounts(`
		n N p A t J o e w x c G D q m C d i L M r S T W B b account begin cluster-constraint clusters comment constraint
		container-env container-image container-mounts container-name container-workdir core-spec cores-per-socket
		cpu-bind cpu-freq cpus-per-gpu cpus-per-task deadline delay-boot dependency distribution epilog error exclude
		export export-file extra-node-info gpu-bind gpu-freq gpus gpus-per-node gpus-per-socket gpus-per-task gres
		gres-flags hint input jobid job-name licenses mail-type mail-user mem mem-bind mem-per-cpu mem-per-gpu mpi network
		nodefile nodelist nodes ntasks ntasks-per-core ntasks-per-gpu ntasks-per-node ntasks-per-socket open-mode output
		partition power priority profile prolog qos relative reservation signal sockets-per-node switches task-epilog
		task-prolog thread-spec threads threads-per-core time time-min tmp tres-bind tres-per-task uid wait wckey chdir`, ""),
}

// valueCounts counts the values of the names in two lists: one each, and two each.
func valueCounts(one, two string) map[string]int {
	values := make(map[string]int)
	for i, names := range []string{one, two} {
		for _, name := range strings.Fields(names) {
			values[name] = i + 1
		}
	}
	return values
}

// programAt is the index of the program in a command: after mpirun or srun and
// their options, or 0.
func programAt(words []string) int {
	takes, ok := optionValues[launcherName(words)]
	if !ok {
		return 0
	}
	for i := 1; i < len(words); i++ {
		switch w := words[i]; {
		case w == "--":
			return min(i+1, len(words))
		case !strings.HasPrefix(w, "-"):
			return i
		default:
			i += takes[strings.TrimLeft(w, "-")]
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

// nestedLauncher is mpirun or srun where another program, such as a shell or
// numactl, starts it; "" where there is none.
func nestedLauncher(words []string) string {
	for _, word := range words[1:] {
		for _, part := range strings.Fields(word) {
			if name := filepath.Base(part); slices.Contains([]string{"mpirun", "mpiexec", "srun"}, name) {
				return name
			}
		}
	}
	return ""
}
