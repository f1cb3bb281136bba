package shown

import (
	"regexp"
	"slices"
	"strings"
)

// hidden stands for what a text does not show.
const hidden = "(redacted)"

// secretName is a name of a flag or variable whose value is a secret: --api-key, HF_TOKEN.
// It is not --max-num-tokens, --tokenizer or --ssl-keyfile.
const secretName = `(?:[A-Za-z0-9]+[-_.])*(?i:(?:api|auth|access|session|id|refresh|bearer)?token|(?:api|auth|access|` +
	`secret)?key|api_?keys|secrets?|password|passwd|pwd|passphrase|credentials?|auth(?:orization)?|signature|sig|cookie|` +
	`apikey)(?i:_(?:db|prod|dev|test|hf|aws|s3|ssh|user|root|admin|\d+))?`

// rule finds secrets: what stands before one is its first group, what stands behind it the second.
// The NUL byte between words counts as a blank.
func rule(pattern string) *regexp.Regexp {
	pattern = strings.ReplaceAll(pattern, "NAME", secretName)
	pattern = strings.ReplaceAll(pattern, "VALUE", `(?:\\?"[^"\\]*\\?"|'[^']*'|[^\s;&|"'#]+)`)
	return regexp.MustCompile(strings.ReplaceAll(pattern, `\s`, `\s\x00`) + `()`)
}

// secretWord is a word that is the value of a flag, or begins with a variable: blanks belong to the secret. Or it is
// glued to -p and has capitals, as ports, -pthread and -print0 do not: -pSECRET.
var secretWord = rule(`((?:^|\x00)(?:-{0,2}NAME=|--?NAME\x00))[^\x00]+|([\s"']-p)[^\sA-Z"']*[A-Z][^\s"']{4,}`)

var secrets = []*regexp.Regexp{
	// flags, variables and parameters of URLs
	rule(`((?:^|[\s;&?|"'` + "`" + `=({,\[])(?:-{0,2}NAME=|--?NAME["']?[\s]+|(?i:bearer[\s]+)))VALUE`),
	// headers of HTTP, up to the end of the line or quote
	rule(`((?i:\b(?:proxy-)?authorization:[\s]*(?:(?:bearer|basic|token|digest|negotiate|apikey)[\s]+)?|` +
		`\b(?:set-)?cookie:[\s]*))[^"'\n\x00]+`),
	// fields of JSON, of a Python dictionary or of YAML; without quotes, "missing key: x" is none, so the name has two
	// parts there, or is a password's
	rule(`((?:^|[\s;&|{(,"'])(?:\\?["']NAME\\?["']|(?:[A-Za-z0-9]+[-_.])+(?i:token|key|secret)|` +
		`(?i:apikey|password|passwd)):[\s]*)(?:\\?"[^"\\]*\\?"|'[^']*'|[^\s"',}]+)`),
	rule(`(://)[^/\s@]+(@)`),
	// curl's -u NAME:PASSWORD; numbers are ids of a user and a group
	rule(`((?:^|[\s"'])(?:-u|--(?:proxy-)?user)["']?[\s=]+["']?[^\s:;&|"']+:)[0-9]*[^\s;&|"'0-9][^\s;&|"']*`),
	// keys that are known by how they begin and are random: sk-learn and hf_hub_download are none
	rule(`(\b)(?:sk-|hf_|gsk_|xai-|nvapi-|r8_|glpat-|npm_|dop_v1_|wandb_v1_|gh[opsur]_|github_pat_|xox[a-z]-|pypi-|` +
		`pplx-|tgp_v1_)(?:(?:[a-z_-]*[A-Z0-9]){3}|(?:[a-z]+[_-])*[a-z]{16})[A-Za-z0-9_-]*`),
	rule(`(\b)(?:(?:AKIA|ASIA)[A-Z0-9]{16}\b|AIza[A-Za-z0-9_-]{30,}|` +
		`eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*)`),
	rule(`(?s)(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(-----END [A-Z ]*PRIVATE KEY-----|$)`),
}

// signs are small letters of which some are in every text with a secret. Most texts have
// none, and there are millions.
var signs = strings.Fields(`token key secret pass pwd cred auth signature sig= sig' sig" --sig cookie bearer @ -u --user
	--proxy-user sk- gsk_ hf_ xai- nvapi- r8_ glpat- npm_ dop_v1_ wandb_v1_ ghp_ gho_ ghs_ ghu_ ghr_ github_pat_ xox pypi-
	pplx- tgp_v1_ akia asia aiza eyj`)

// Masked hides the values of secret flags, variables, fields, parameters and headers, the
// logins of URLs, and keys that are known by their first letters: "--api-key x" → "--api-key (redacted)".
func Masked(text string) string {
	small := strings.ToLower(text)
	if !slices.ContainsFunc(signs, func(sign string) bool { return strings.Contains(small, sign) }) {
		return text
	}
	for _, secret := range secrets {
		text = secret.ReplaceAllString(text, "${1}"+hidden+"${2}")
	}
	return text
}

// Mask is Masked for the words of a command, where a value is a word whatever is in it.
func Mask(words []string) []string {
	line := secretWord.ReplaceAllString(strings.Join(words, "\x00"), "${1}${2}"+hidden)
	return strings.Split(Masked(line), "\x00")[:len(words)]
}
