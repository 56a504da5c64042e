//go:build !noasm

package kernel

import "syscall"

// amxPermitted asks Linux for the permission to use AMX's tiles, for all threads of the process. See
// Documentation/arch/x86/xstate.rst in Linux's sources. Linux refuses if it is older than 5.16, if a virtual machine
// hides the tiles, or if a thread has a stack for signals that is too small for the tiles (8 KB). Go's stacks for
// signals have 32 KB. This runs before main, so before C code of a program with cgo starts threads. From then on,
// Linux refuses such small stacks: sigaltstack returns ENOMEM to C code.
func amxPermitted() bool {
	const (
		request  = 0x1023 // ARCH_REQ_XCOMP_PERM
		tileData = 18     // XFEATURE_XTILE_DATA
	)
	_, _, errno := syscall.RawSyscall(syscall.SYS_ARCH_PRCTL, request, tileData, 0)
	return errno == 0
}
