package safetensors

import "errors"

// ErrTruncated is wrapped by the errors about files that end too early.
var ErrTruncated = errors.New("the end of the file")

// ErrNoTensor is wrapped by the errors about names that a file does not hold.
var ErrNoTensor = errors.New("no such tensor")
