package sizes

import (
	"math"
	"syscall"
)

// limit returns the bytes of memory that the machine has.
func limit() int {
	var info syscall.Sysinfo_t
	if err := syscall.Sysinfo(&info); err != nil {
		return unknown
	}
	return int(min(uint64(info.Totalram)*uint64(info.Unit), math.MaxInt-1))
}
