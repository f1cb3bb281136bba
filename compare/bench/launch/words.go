package launch

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Words splits a command line as a POSIX shell does, with quotes and
// backslashes but without expanding anything: no variables, globs or pipes.
func Words(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	open, quote, escaped := false, rune(0), false
	for _, r := range line {
		switch {
		case escaped:
			if quote == '"' && !strings.ContainsRune("\"\\$`", r) {
				word.WriteRune('\\') // inside double quotes it escapes only these
			}
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped, open = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, open = r, true
		case r == ' ' || r == '\t' || r == '\n':
			if open {
				words = append(words, word.String())
				word.Reset()
				open = false
			}
		default:
			word.WriteRune(r)
			open = true
		}
	}
	if quote != 0 || escaped {
		return nil, fmt.Errorf("unfinished quote or backslash in %q", line)
	}
	if open {
		words = append(words, word.String())
	}
	return words, nil
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// Quote writes words as a POSIX shell reads them back.
func Quote(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = w
		if !plainWord.MatchString(w) {
			quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

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

// Options of clients that name the server: by its URL, or by host and port.
var (
	serverURL = regexp.MustCompile(
		`(?:^|\s)(?:--?(?:base|api|server|endpoint)?[-_]?url|--api[-_]base|--server|-u)[=\s]+["']?([^\s"']+)`)
	serverHost = regexp.MustCompile(`(?:^|\s)--host(?:name)?[=\s]+["']?([^\s"']+)`)
	serverPort = regexp.MustCompile(`(?:^|\s)--port[=\s]+["']?(\d+)`)
)

// ServersOf are the servers that a client's words name, as host:port; this machine is
// localhost by any name.
func ServersOf(words []string) (servers []string) {
	text := strings.Join(words, " ")
	for _, m := range serverURL.FindAllStringSubmatch(text, -1) {
		if at := Address(m[1]); at != "" {
			servers = append(servers, at)
		}
	}
	if port := serverPort.FindStringSubmatch(text); port != nil && len(servers) == 0 {
		host := "localhost"
		if m := serverHost.FindStringSubmatch(text); m != nil {
			host = m[1]
		}
		servers = append(servers, Address(net.JoinHostPort(strings.Trim(host, "[]"), port[1])))
	}
	return servers
}

// Address is host:port of a URL, or of that without a scheme; empty for another text.
func Address(text string) string {
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443"}[u.Scheme]
	}
	if port == "" {
		port = "80"
	}
	host, name := u.Hostname(), ""
	name, _ = os.Hostname()
	if slices.Contains([]string{"127.0.0.1", "0.0.0.0", "::1", "::", name}, host) {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}
