package main

import (
	"errors"
	"io"
)

// closing closes c on the way out and keeps its error beside the function's own:
// a run writes what it still owes when it is closed.
func closing(c io.Closer, err *error) { *err = errors.Join(*err, c.Close()) }
