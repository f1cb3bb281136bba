package metrics

import (
	"bytes"
	"io"
	"testing"
)

func BenchmarkParse(b *testing.B) {
	files := fixtureFiles(b)
	rows := files["iteration-log.txt"]
	for name, text := range map[string][]byte{
		"text":           files["trtllm-bench-c.txt"][:1000],
		"iteration rows": rows[:bytes.LastIndexByte(rows, '\n')+1],
		"print_iter_log": files["print-iter-log-3.txt"],
	} {
		b.Run(name, func(b *testing.B) {
			const size = 4 << 20
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				in := io.MultiReader(&repeated{text: text, left: size, each: func() {}}, bytes.NewReader([]byte("\n")),
					bytes.NewReader(files["vllm-throughput.txt"]))
				if _, err := Parse("output", in, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
