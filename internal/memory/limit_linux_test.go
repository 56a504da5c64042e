package memory

import (
	"math"
	"testing"
	"testing/fstest"
)

func TestGroupLimit(t *testing.T) {
	const (
		v1     = "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 master:2 - cgroup cgroup rw,memory\n"
		v2     = "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
		hybrid = v1 + "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
		none   = math.MaxUint64
	)
	for _, test := range []struct {
		name, groups, mounts string
		files                map[string]string
		want                 uint64
	}{
		{"no files", "", "", nil, none},
		{"no mount", "0::/job\n", "", map[string]string{"sys/fs/cgroup/job/memory.max": "70"}, none},
		{"version 2: a container", "0::/\n", v2, map[string]string{"sys/fs/cgroup/memory.max": "70\n"}, 70},
		{"version 2: no limit", "0::/job\n", v2, map[string]string{"sys/fs/cgroup/job/memory.max": "max\n"}, none},
		{"version 2: the process's group", "0::/slurm/job 7\n", v2, map[string]string{
			"sys/fs/cgroup/slurm/job 7/memory.max": "70\n", "sys/fs/cgroup/slurm/memory.max": "max\n"}, 70},
		{"version 2: a parent group", "0::/slurm/job/step\n", v2, map[string]string{
			"sys/fs/cgroup/slurm/job/step/memory.max": "max\n", "sys/fs/cgroup/slurm/job/memory.max": "90\n", "sys/fs/cgroup/slurm/memory.max": "80\n"}, 80},
		{"version 2: another group", "0::/a\n", v2, map[string]string{"sys/fs/cgroup/ab/memory.max": "70\n"}, none},
		{"version 2: outside the container", "0::/../other\n", v2, map[string]string{"sys/fs/cgroup/memory.max": "70\n"}, 70},
		{"version 2: a mount of a group elsewhere", "0::/pod/a\n", "31 23 0:28 /pod /my\\040groups rw - cgroup2 none rw\n",
			map[string]string{"my groups/a/memory.max": "70\n", "my groups/memory.max": "80\n", "memory.max": "5\n"}, 70},
		{"version 2: a mount of the process's group", "0::/pod/a\n", "31 23 0:28 /pod/a /sys/fs/cgroup rw - cgroup2 none rw\n",
			map[string]string{"sys/fs/cgroup/memory.max": "70\n"}, 70},
		{"version 1: no limit", "4:memory:/\n", v1, map[string]string{"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 9223372036854771712},
		{"version 1: the process's group", "9:name=systemd:/x\n4:cpu,memory:/batch/a:b\n", v1, map[string]string{
			"sys/fs/cgroup/memory/batch/a:b/memory.limit_in_bytes": "70\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 70},
		{"version 1: a parent group", "4:memory:/batch/job\n", v1, map[string]string{
			"sys/fs/cgroup/memory/batch/job/memory.limit_in_bytes": "9223372036854771712\n", "sys/fs/cgroup/memory/batch/memory.limit_in_bytes": "80\n"}, 80},
		{"both versions: version 1 limits", "4:memory:/job\n0::/\n", hybrid, map[string]string{
			"sys/fs/cgroup/memory/job/memory.limit_in_bytes": "70\n", "sys/fs/cgroup/cpu/job/memory.limit_in_bytes": "5\n"}, 70},
		{"both versions: version 2 limits", "4:memory:/\n0::/user/job\n", hybrid, map[string]string{
			"sys/fs/cgroup/unified/user/memory.max": "70\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "80\n"}, 70},
	} {
		files := fstest.MapFS{
			"proc/self/cgroup":    {Data: []byte(test.groups)},
			"proc/self/mountinfo": {Data: []byte("27 1 254:0 / / rw - ext4 /dev/vda rw\n" + test.mounts)},
		}
		for name, content := range test.files {
			files[name] = &fstest.MapFile{Data: []byte(content)}
		}
		if got := groupLimit(files); got != test.want {
			t.Errorf("%s: %d, want %d", test.name, got, test.want)
		}
	}
}

// TestTaken checks that taken counts reserved memory and not resident memory.
func TestTaken(t *testing.T) {
	address, data := taken("431360 5632 4608 3190 0 31488 0\n", 4096, 2) // pages: 1,685 MB in all, 22 MB resident, 18 MB shared, 123 MB of data
	if mb := address >> 20; mb < 1685-22 || mb > 2200 {
		t.Errorf("%d MB of address space, want 1663 to 2200", mb)
	}
	if mb := data >> 20; mb < 123+18-22 || mb > 200 {
		t.Errorf("%d MB of data, want 119 to 200", mb)
	}
	if address, data := taken("", 4096, 1); address > 1<<30 || data > 1<<30 {
		t.Errorf("without statm: %d and %d bytes, want at most 1 GiB each", address, data)
	}
}
