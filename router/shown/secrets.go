package shown

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// hidden stands for what a text does not show.
const hidden = "(redacted)"

// secretName is a name of a flag or variable whose value is a secret: --api-key, HF_TOKEN.
// It is not --max-num-tokens, --tokenizer or --ssl-keyfile.
const secretName = `(?:[A-Za-z0-9]+[-_.])*(?i:(?:api|auth|access|session|id|refresh|bearer)?token|(?:api|auth|access|` +
	`secret)?key|api_?keys|secrets?|password|passwd|pwd|passphrase|credentials?|auth(?:orization)?|signature|sig|cookie|` +
	`apikey)(?i:_(?:db|prod|dev|test|hf|aws|s3|ssh|user|root|admin|\d+))?`

// secretValue is what stands behind a name: quoted, or up to the next blank or end of
// a command or parameter.
const secretValue = `(?:\\?"[^"\\]*\\?"|'[^']*'|[^\s;&|"'#]+)`

var (
	secretFlag  = regexp.MustCompile(`^--?` + secretName + `$`)
	secretWord  = regexp.MustCompile(`^(-{0,2}` + secretName + `=)(?s:.+)$`)
	secretInner = regexp.MustCompile(`((?:^|[\s;&?|"'` + "`" + `=({,\[])(?:-{0,2}` + secretName + `=|--?` + secretName +
		`["']?\s+|(?i:bearer\s+)))` + secretValue)
	// secretHeader is a header of HTTP, whose value goes on to the end of the line or quote.
	secretHeader = regexp.MustCompile(
		`((?i:\b(?:proxy-)?authorization:\s*(?:(?:bearer|basic|token|digest|negotiate|apikey)\s+)?|` +
			`\b(?:set-)?cookie:\s*))[^"'\n]+`)
	// A field of JSON, of a Python dictionary or of YAML. Without quotes, "missing key: x" is
	// none, so the name has two parts there, or is a password's.
	secretField = regexp.MustCompile(`((?:^|[\s;&|{(,"'])(?:\\?["']` + secretName +
		`\\?["']|(?:[A-Za-z0-9]+[-_.])+(?i:token|key|secret)|(?i:apikey|password|passwd)):\s*)(?:\\?"[^"\\]*\\?"|'[^']*'|` +
		`[^\s"',}]+)`)
	secretLogin = regexp.MustCompile(`(://)[^/\s@]+@`)
	// secretLetter is the flag -p of clients, also with its value glued on, secretUser the -u NAME:PASSWORD of curl.
	secretLetter = regexp.MustCompile(`(?:^|[\s"'])-p(["']?(?:=|\s+)["']?|["'])?([^\s;&|"']+)`)
	secretUser   = regexp.MustCompile(`((?:^|[\s"'])(?:-u|--(?:proxy-)?user)["']?[\s=]+["']?[^\s:;&|"']+:)([^\s;&|"']+)`)
	// asks are the programs whose -p is a password, whatever it looks like.
	asks = regexp.MustCompile(`\b(?:sshpass|7z\w*|mysql\w*|mariadb\w*|(?:docker|podman|nerdctl|helm registry|skopeo|` +
		`oras) login)\s(?:[^;&|]*\s)?["']?$`)
	// bare are secrets that are known by how they begin. A few letters are no secret: sk-learn, hf_hub.
	bare = regexp.MustCompile(`\b(?:sk-|hf_|gsk_|xai-|nvapi-|r8_|glpat-|npm_|dop_v1_|wandb_v1_|gh[opsur]_|github_pat_|` +
		`xox[a-z]-|pypi-|pplx-|tgp_v1_)[A-Za-z0-9_-]{6,}|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[A-Za-z0-9_-]{30,}|` +
		`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`)
	// armored is a private key.
	armored = regexp.MustCompile(`(?s)(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(-----END [A-Z ]*PRIVATE KEY-----|$)`)
)

// ordinary is what follows a -p that is no password: a port, a number, a path, a
// partition or another plain word.
var ordinary = regexp.MustCompile(`^(?:[\d.,:e+-]+(?:/tcp|/udp)?|[A-Z]?[a-z_-]+[.,!?:]?|[.~$-].*|` +
	`[a-z0-9_./-]*/[a-z0-9_./-]*|.*=.*)$`)

// Mask hides the values of secret flags, variables, fields, parameters and headers, the
// logins of URLs, and keys that are known by their first letters, for words that are shown.
func Mask(words []string) []string {
	masked := make([]string, len(words))
	for i, w := range words {
		masked[i] = Masked(secretWord.ReplaceAllString(w, "${1}"+hidden))
		if i == 0 {
			continue
		}
		flag, before := words[i-1], func(n int) string { return strings.Join(words[max(0, i-9):n], " ") + " " }
		switch user, password, both := strings.Cut(w, ":"); {
		case secretFlag.MatchString(flag), flag == "-p" && isPassword(before(i-1), w, false):
			masked[i] = hidden
		case len(w) > 2 && w[:2] == "-p" && isPassword(before(i), w[2:], true):
			masked[i] = "-p" + hidden
		case both && password != "" && !isNumber(password) && (flag == "-u" || flag == "--user" || flag == "--proxy-user"):
			masked[i] = user + ":" + hidden
		}
	}
	return masked
}

// signs are small letters of which some are in every text with a secret. Most texts have
// none, and there are millions.
var signs = []string{
	"token", "key", "secret", "pass", "pwd", "cred", "auth", "signature", "sig=", "sig'", `sig"`, "--sig", "cookie",
	"bearer", "@", "-p", "-u", "--user", "--proxy-user",
	"sk-", "gsk_", "hf_", "xai-", "nvapi-", "r8_", "glpat-", "npm_", "dop_v1_", "wandb_v1_", "ghp_", "gho_", "ghs_",
	"ghu_", "ghr_", "github_pat_", "xox", "pypi-", "pplx-", "tgp_v1_", "akia", "asia", "aiza", "eyj",
}

// Masked is Mask for one text.
func Masked(w string) string {
	small := strings.ToLower(w)
	if !slices.ContainsFunc(signs, func(sign string) bool { return strings.Contains(small, sign) }) {
		return w
	}
	w = secretInner.ReplaceAllString(w, "${1}"+hidden)
	w = secretHeader.ReplaceAllString(w, "${1}"+hidden)
	w = secretField.ReplaceAllString(w, "${1}"+hidden)
	w = secretLogin.ReplaceAllString(w, "${1}"+hidden+"@")
	w = maskLetters(w)
	w = secretUser.ReplaceAllStringFunc(w, func(found string) string {
		m := secretUser.FindStringSubmatch(found)
		if isNumber(m[2]) { // ids of a user and a group
			return found
		}
		return m[1] + hidden
	})
	w = bare.ReplaceAllStringFunc(w, func(key string) string {
		if isRandom(key) {
			return hidden
		}
		return key
	})
	return armored.ReplaceAllString(w, "${1}"+hidden+"${2}")
}

// maskLetters hides the values of -p.
func maskLetters(w string) string {
	var b strings.Builder
	end := 0
	for _, at := range secretLetter.FindAllStringSubmatchIndex(w, -1) {
		before, glued := w[max(0, at[0]-mostBefore):at[0]]+" ", at[3]-at[2] < 1 || strings.Contains(`"'`, w[at[2]:at[3]])
		if isPassword(before, w[at[4]:at[5]], glued) {
			b.WriteString(w[end:at[4]] + hidden)
			end = at[5]
		}
	}
	return b.String() + w[end:]
}

// mostBefore is how many bytes before a flag may name its program.
const mostBefore = 256

func isNumber(text string) bool { return strings.Trim(text, "0123456789") == "" }

// isPassword reports a value of -p that is to be hidden, after what stands before the flag. What is glued
// to the flag may be another flag's name, such as -print.
func isPassword(before, value string, glued bool) bool {
	return value != hidden && (asks.MatchString(before) || !glued && !ordinary.MatchString(value))
}

// isRandom tells a key from a name that begins like one, such as hf_transfer.
func isRandom(key string) bool {
	odd := 0
	for _, r := range key {
		if unicode.IsDigit(r) || unicode.IsUpper(r) {
			odd++
		}
	}
	parts := strings.FieldsFunc(key, func(r rune) bool { return r == '-' || r == '_' })
	return odd >= 3 || slices.ContainsFunc(parts, func(part string) bool { return len(part) >= 16 })
}
