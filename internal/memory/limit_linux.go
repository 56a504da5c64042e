package memory

import (
	"bytes"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// limit returns the bytes of memory that the process may use: the smallest of the machine's memory, the limits of the
// control groups, and the resource limits. It also returns the name of this limit for messages, or "" for the machine's
// memory.
var limit = sync.OnceValues(func() (int, string) {
	size, by := uint64(unknown), ""
	var info syscall.Sysinfo_t
	if err := syscall.Sysinfo(&info); err == nil {
		size = uint64(info.Totalram) * uint64(info.Unit)
	}
	root := os.DirFS("/")
	statm, _ := fs.ReadFile(root, "proc/self/statm")
	address, data := taken(string(statm), os.Getpagesize(), runtime.GOMAXPROCS(0))
	for _, l := range []struct {
		size uint64
		by   string
	}{
		{groupLimit(root), " under the limit of its control group"},
		{left(syscall.RLIMIT_AS, address), " under the limit of address space (ulimit -v)"},
		{left(syscall.RLIMIT_DATA, data), " under the limit of data (ulimit -d)"},
	} {
		if l.size < size {
			size, by = l.size, l.by
		}
	}
	return int(min(size, math.MaxInt-1)), by
})

// left returns how many bytes of a resource limit remain after taken bytes.
func left(resource int, taken uint64) uint64 {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(resource, &r); err != nil || uint64(r.Cur) > math.MaxInt64 { // no limit
		return math.MaxUint64
	}
	return uint64(r.Cur) - min(uint64(r.Cur), taken)
}

// taken returns how many bytes of address space and of data a process reserves, now and later, without using them.
// These are about 1.2 GB for the tables of Go's heap, and memory for threads: each thread that C starts reserves a
// stack of 8 MB and, with the GNU C library, a heap of 64 MB. The argument statm is the content of /proc/self/statm.
func taken(statm string, page, processors int) (address, data uint64) {
	const stack, heap = 8 << 20, 64 << 20
	threads := uint64(2 + 2*processors) // approximate number of threads that will still start
	var size, resident, shared, text, library, private uint64
	fmt.Sscan(statm, &size, &resident, &shared, &text, &library, &private)
	address = (size - min(size, resident)) * uint64(page)
	data = (private + shared - min(private+shared, resident)) * uint64(page)
	return address + threads*heap, data + threads*stack
}

// groupLimit returns the smallest memory limit of this process's control groups and their parents. It finds groups of
// versions 1 and 2 wherever they are mounted. The argument root is the root of the file system.
func groupLimit(root fs.FS) uint64 {
	groups, _ := fs.ReadFile(root, "proc/self/cgroup")
	mounts, _ := fs.ReadFile(root, "proc/self/mountinfo")
	smallest := uint64(math.MaxUint64)
	for line := range strings.Lines(string(mounts)) {
		// 31 23 0:28 /mounted/group /where/to rw,relatime shared:9 - cgroup cgroup rw,memory
		mount, source, _ := strings.Cut(line, " - ")
		where, what := strings.Fields(mount), strings.Fields(source)
		if len(where) < 5 || len(what) < 3 {
			continue
		}
		file, controller := "memory.max", ""
		if what[0] == "cgroup" && slices.Contains(strings.Split(what[2], ","), "memory") {
			file, controller = "memory.limit_in_bytes", "memory"
		} else if what[0] != "cgroup2" {
			continue
		}
		top := strings.TrimPrefix(unescape(where[4]), "/")
		group := path.Join(top, "/", below(unescape(where[3]), groupOf(string(groups), controller)))
		for ; ; group = path.Dir(group) {
			data, _ := fs.ReadFile(root, path.Join(group, file))
			if n, err := strconv.ParseUint(string(bytes.TrimSpace(data)), 10, 64); err == nil { // otherwise data is "max"
				smallest = min(smallest, n)
			}
			if len(group) <= len(top) {
				break
			}
		}
	}
	return smallest
}

// groupOf returns the path of a process's control group for a controller, or its path in version 2 if controller is "".
// The argument groups is the content of /proc/self/cgroup.
func groupOf(groups, controller string) string {
	for line := range strings.Lines(groups) { // 4:memory:/group
		if f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3); len(f) == 3 && slices.Contains(strings.Split(f[1], ","), controller) {
			return path.Clean("/" + f[2])
		}
	}
	return "/"
}

// below returns the path of group relative to mounted, or "/" if group isn't below mounted.
func below(mounted, group string) string {
	rest, ok := strings.CutPrefix(group, strings.TrimSuffix(mounted, "/"))
	if !ok || rest != "" && rest[0] != '/' {
		return "/"
	}
	return rest
}

// unescape returns a path from /proc/self/mountinfo without its octal escapes.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
