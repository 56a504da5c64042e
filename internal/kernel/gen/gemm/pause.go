package main

import (
	. "github.com/mmcloughlin/avo/build"
)

// pause writes the function that waits a moment in a loop that looks for something.
func pause() {
	TEXT("parallelPause", NOSPLIT, "func()")
	PAUSE()
	RET()
}
