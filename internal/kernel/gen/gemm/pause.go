package main

import (
	. "github.com/mmcloughlin/avo/build"
)

// pause writes parallelPause, which waits for a moment in a polling loop.
func pause() {
	TEXT("parallelPause", NOSPLIT, "func()")
	PAUSE()
	RET()
}
