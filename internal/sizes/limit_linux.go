package sizes

import (
	"math"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// limit returns the bytes of memory that the machine has or, if it has less, that its container may use.
var limit = sync.OnceValue(func() int {
	most := uint64(unknown)
	var info syscall.Sysinfo_t
	if err := syscall.Sysinfo(&info); err == nil {
		most = uint64(info.Totalram) * uint64(info.Unit)
	}
	for _, path := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		data, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if n, err := strconv.ParseUint(strings.TrimSpace(string(data)), 10, 64); err == nil { // otherwise it is "max"
			most = min(most, n)
		}
	}
	return int(min(most, math.MaxInt-1))
})
