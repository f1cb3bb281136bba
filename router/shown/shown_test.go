package shown

import (
	"strings"
	"testing"
)

// Secrets of every kind are hidden, and what stands around them is kept.
func TestMasked(t *testing.T) {
	for _, line := range []string{
		"http://h:1/v1?api_key=§", "http://h/v1?x=1&api_key=§", "'http://h/x?token=§&n=1'",
		"https://s3/x?X-Amz-Signature=§&n=1", "https://h/x?sig=§#top",
		"curl -u me:§ http://h", "curl --user me:§", `curl -H "Authorization: Bearer §" x`,
		"curl -H 'Authorization: Token §' x", "Authorization: §",
		"Proxy-Authorization: Basic §", "X-Api-Key: §", "Cookie: session=§; a=b", "bearer §", "https://me:§@host/x",
		"https://§@host/x",
		`HF_TOKEN="§" run`, "HF_TOKEN='§' run", "env AWS_SECRET_ACCESS_KEY=§ run", "--api-key § --n 8",
		"--openai-api-key=§", "PWD_DB=§", "bench --metric 'x=token=§ ('", "missing ): `token=§ (`", `{"api_key": "§", "n": 1}`, "{api_key=§}",
	} {
		for _, secret := range []string{"hunter2", "S3cr3t+x", "SESAME"} {
			got := Masked(strings.ReplaceAll(line, "§", secret))
			if strings.Contains(got, secret) || !strings.Contains(got, hidden) {
				t.Errorf("%s of %s: %s", line, secret, got)
			}
		}
	}
	for _, secret := range []string{
		"sk-abc123def456", "sk-proj-Ab12Cd34_ef", "sk-abcdefghijklmnopqrst", "hf_AbCdEfGhIjKlMnOp", "hf_abcdef123456",
		"ghp_0123456789abcdefABCDEF0123456789abcd", "github_pat_11ABC_xyz0123",
		"AKIAIOSFODNN7EXAMPLE", "ASIAIOSFODNN7EXAMPLE", "glpat-AbC123xyz_-89", "xoxb-123456-abcdef",
		"AIzaSyA1234567890abcdefghijklmnopqrstuv", "nvapi-AbCd1234", "gsk_AbCd1234",
		"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc_DEF-1",
	} {
		for _, line := range []string{"§", "run § now", "run --x=§,b", `"§"`, "http://h/§/x"} {
			if got := Masked(strings.ReplaceAll(line, "§", secret)); got != strings.ReplaceAll(line, "§", hidden) {
				t.Errorf("%s of %s: %s", line, secret, got)
			}
		}
	}
	got := Mask([]string{"client", "--api-key", "a b", "-u", "me:a", "KEY=a b", "sh -c 'x --token a -pS3cret'", "-p", "8000", "-pSESAME", "-pthread",
		"-p8000", "-pH200"})
	if want := "client --api-key § -u me:§ KEY=§ sh -c 'x --token § -p§' -p 8000 -p§ -pthread -p8000 -pH200"; strings.Join(got, " ") !=
		strings.ReplaceAll(want, "§", hidden) {
		t.Errorf("words: %q", got)
	}
	if got := Mask(nil); len(got) != 0 {
		t.Errorf("no words: %q", got)
	}
	key := "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----"
	if got := Masked(key); strings.Contains(got, "MIIE") {
		t.Errorf("private key: %s", got)
	}
}

// Ordinary words are no secrets.
func TestOrdinaryWordsStay(t *testing.T) {
	for _, line := range []string{
		"vllm serve -p 8000 m", "docker run -p 8000:8000/tcp i", "srun -p gpu -n 4 run", "mkdir -p out/x",
		"mkdir -p out", "find . -print0", "gcc -pthread x.c", "ssh -p2222 h", "llama -p 'Hello world'", "nucleus -p 0.95", "run --user 1000:1000 -u 0:0",
		"pip install sk-learn scikit-learn hf_transfer hf_hub_download",
		"risk-adjusted ask-me task-based disk-2024-ABC", "--max-num-tokens 8 --tokenizer t --tokens=5",
		"missing key: x",
		"void sort<int, float>(key_value*)", "nvjet_tst_128x64_64x4_2x1_v_bz_TNT", "tokens per step: 8192",
		"basis: measured; token counts 12", "http://localhost:8000/health?n=1&model=x", "a@b.c",
		"max_over_mean=1.2 top_k=4 monkey=2", "Asia/Tokyo EYJ", "authorization is off", "4 H200s, 12.5 %, p = 0.05, n -p", "sha256:0123456789abcdef0123", "hf-qwen3-ep4",
		"mode=perfect, rank 0 of 4; passes=3 signal=9 assigned=1",
	} {
		if got := Masked(line); got != line {
			t.Errorf("%s became %s", line, got)
		}
	}
}

// No character steers a terminal, hides or turns a line around.
func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"a\u202eb": `a\u202eb`, "\x1b[31m": `\x1b[31m`, "a\tb\rc\nd": "a\\tb\\rc\nd",
		"\u2066\u200b\ufeff\u200f\u061c": `\u2066\u200b\ufeff\u200f\u061c`,
		"a\u2028b":                       `a\u2028b`, "\u0085": `\u0085`, "\xff\xc3": `\xff\xc3`,
		"\U000e0041": `\U000e0041`,
		"größe 12 µs – 5 % 専門家 \ufffd": "größe 12 µs – 5 % 専門家 \ufffd",
	} {
		if got := Visible(text); got != want {
			t.Errorf("%q: have %q, want %q", text, got, want)
		}
	}
}
