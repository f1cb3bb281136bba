package capture

import (
	"strings"

	"github.com/ianlancetaylor/demangle"
)

// demangledLimit is the power of 2 that bounds a demangled name: the names of CUTLASS
// kernels take up to some ten thousand bytes, and a hostile one expands without end.
const demangledLimit = 16

// demangled spells a mangled C++ name as nsys does. PyTorch's profiler leaves those
// mangled that its own demangler cannot read, the grouped GEMM of CUTLASS among them.
func demangled(name string) string {
	if !strings.HasPrefix(name, "_Z") {
		return name
	}
	return demangle.Filter(name, demangle.MaxLength(demangledLimit))
}
