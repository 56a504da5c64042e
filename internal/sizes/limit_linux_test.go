package sizes

import (
	"slices"
	"testing"
)

func TestLimitFiles(t *testing.T) {
	const root = "/sys/fs/cgroup/memory.max"
	for _, test := range []struct {
		name, groups string
		want         []string
	}{
		{"unknown", "", []string{root}},
		{"a container", "0::/\n", []string{root}},
		{"a job", "0::/slurm/job 7\n", []string{"/sys/fs/cgroup/slurm/job 7/memory.max", "/sys/fs/cgroup/slurm/memory.max", root}},
		{"both versions", "4:memory:/user\n0::/user\n", []string{"/sys/fs/cgroup/user/memory.max", root}},
		{"outside of its container", "0::/../other\n", []string{"/sys/fs/cgroup/other/memory.max", root}},
	} {
		if got := limitFiles(test.groups); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
