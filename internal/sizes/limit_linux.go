package sizes

import (
	"math"
	"os"
	"path"
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
	groups, _ := os.ReadFile("/proc/self/cgroup")
	for _, file := range append(limitFiles(string(groups)), "/sys/fs/cgroup/memory/memory.limit_in_bytes") {
		data, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if n, err := strconv.ParseUint(strings.TrimSpace(string(data)), 10, 64); err == nil { // otherwise it is "max"
			most = min(most, n)
		}
	}
	return int(min(most, math.MaxInt-1))
})

// limitFiles returns the files that may say how much memory a process may use, given its /proc/self/cgroup: that of its
// control group, of the second version, and of those around it. In a container the outermost is the container's.
func limitFiles(groups string) []string {
	group := "/"
	for line := range strings.Lines(groups) {
		if of, ok := strings.CutPrefix(line, "0::/"); ok {
			group = path.Clean("/" + strings.TrimSuffix(of, "\n"))
		}
	}
	var files []string
	for ; group != "/"; group = path.Dir(group) {
		files = append(files, "/sys/fs/cgroup"+group+"/memory.max")
	}
	return append(files, "/sys/fs/cgroup/memory.max")
}
