package launch

import "regexp"

// hidden stands for what a text does not show.
const hidden = "(redacted)"

// secretName is a name of a flag or variable whose value is a secret: --api-key, HF_TOKEN.
// It is not --max-num-tokens, --tokenizer or --ssl-keyfile.
const secretName = `(?:[A-Za-z0-9]+[-_.])*(?i:(?:api|auth|access)?token|(?:api|auth|access|secret)?key|api_?keys|secrets?|password|passwd|passphrase|credentials?|auth(?:orization)?)`

var (
	secretFlag  = regexp.MustCompile(`^--?` + secretName + `$`)
	secretWord  = regexp.MustCompile(`^(-{0,2}` + secretName + `=)(?s:.+)$`)
	secretInner = regexp.MustCompile(`((?:^|[\s;&|"'])(?:-{0,2}` + secretName + `=|--?` + secretName + `\s+|(?i:authorization:\s*(?:bearer|basic)?\s*|bearer\s+)))[^\s;&|"']+`)
	// A field of JSON, of a Python dictionary or of YAML. Without quotes, "missing key: x" is
	// none, so the name has two parts there, or is a password's.
	secretField = regexp.MustCompile(`((?:^|[\s;&|{(,"'])(?:\\?["']` + secretName + `\\?["']|(?:[A-Za-z0-9]+[-_.])+(?i:token|key|secret)|(?i:apikey|password|passwd)):\s*)(?:\\?"[^"\\]*\\?"|'[^']*'|[^\s"',}]+)`)
	secretLogin = regexp.MustCompile(`(://)[^/\s@]+@`)
)

// Mask hides the values of secret flags, variables and fields and the logins of URLs, for
// words that are shown.
func Mask(words []string) []string {
	masked := make([]string, len(words))
	for i, w := range words {
		if i > 0 && secretFlag.MatchString(words[i-1]) {
			masked[i] = hidden
			continue
		}
		w = secretWord.ReplaceAllString(w, "${1}"+hidden)
		w = secretInner.ReplaceAllString(w, "${1}"+hidden)
		w = secretField.ReplaceAllString(w, "${1}"+hidden)
		masked[i] = secretLogin.ReplaceAllString(w, "${1}"+hidden+"@")
	}
	return masked
}
