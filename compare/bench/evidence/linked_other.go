//go:build !unix

package evidence

import "os"

// linked is not known on this system.
func linked(os.FileInfo) bool { return false }
