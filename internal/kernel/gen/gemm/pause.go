package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/reg"
)

// pause writes parallelPause, which waits for a moment in a polling loop.
func pause() {
	TEXT("parallelPause", NOSPLIT, "func()")
	PAUSE()
	RET()
}

// cpuid writes a function that asks the processor about itself.
func cpuid() {
	TEXT("cpuid", NOSPLIT, "func(leaf, part uint32) (eax, ebx, ecx, edx uint32)")
	Load(Param("leaf"), reg.EAX)
	Load(Param("part"), reg.ECX)
	CPUID()
	for i, r := range []reg.Register{reg.EAX, reg.EBX, reg.ECX, reg.EDX} {
		Store(r, ReturnIndex(i))
	}
	RET()
}
