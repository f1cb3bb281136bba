//go:build !unix

package draft

import (
	"errors"
	"os"
)

// lock is not available: what a killed writer left behind is not swept.
func lock(*os.File) (held bool, err error) { return false, errors.ErrUnsupported }
