package testseed

import (
	"os"
	"syscall"
)

// KeepInMemory lets tests keep their files in memory, if the system has a folder with 2 GiB for that and TMPDIR names
// no other folder. It is for the TestMain of a package that trains: syncing a file to a disk takes milliseconds, and a
// run of thirty steps syncs dozens.
func KeepInMemory() {
	const memory = "/dev/shm"
	var fs syscall.Statfs_t
	if os.Getenv("TMPDIR") != "" || syscall.Statfs(memory, &fs) != nil || fs.Bavail*uint64(fs.Bsize) < 2<<30 { // containers often have 64 MB
		return
	}
	if dir, err := os.MkdirTemp(memory, ""); err == nil {
		os.Remove(dir)
		os.Setenv("TMPDIR", memory)
	}
}
