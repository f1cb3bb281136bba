package kernel

import (
	_ "embed"
	"regexp"
	"strings"
)

// kernelRule is one row of the classifier. The first rule whose function and
// arguments match the spelled name decides.
type kernelRule struct {
	function  *regexp.Regexp // matches a component of the function's qualified name from its start
	arguments []string       // one of these is in its template arguments; none matches any
	class     Class
	source    string // where the names were seen
}

//go:embed rules.txt
var rulesText string

// kernelRules are those of rules.txt.
var kernelRules = func() (list []kernelRule) {
	for stanza := range strings.SplitSeq(rulesText, "\n\n") {
		var r kernelRule
		var functions []string
		for line := range strings.Lines(stanza) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			switch key {
			case "function":
				functions = append(functions, value)
			case "argument":
				r.arguments = append(r.arguments, value)
			case "phase":
				r.class.Phase = Phase(value)
			case "fuses":
				for phase := range strings.SplitSeq(value, ", ") {
					r.class.Fused = append(r.class.Fused, Phase(phase))
				}
			case "is":
				r.class.Collective = strings.Contains(value, "collective")
				r.class.GEMM = strings.Contains(value, "GEMM")
				r.class.TopK = strings.Contains(value, "top k")
			case "library":
				r.class.Library = value
			case "source":
				r.source = value
			}
		}
		if functions != nil {
			r.function = regexp.MustCompile(`^(?:` + strings.Join(functions, "|") + `)`)
			list = append(list, r)
		}
	}
	return list
}()
