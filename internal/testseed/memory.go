package testseed

import "os"

// KeepInMemory lets tests keep their files in memory, if the system has a folder for that and TMPDIR names no other
// folder. It is for the TestMain of a package that trains: syncing a file to a disk takes milliseconds, and a run of
// thirty steps syncs dozens.
func KeepInMemory() {
	const memory = "/dev/shm" // on Linux
	if os.Getenv("TMPDIR") != "" {
		return
	}
	if dir, err := os.MkdirTemp(memory, ""); err == nil {
		os.Remove(dir)
		os.Setenv("TMPDIR", memory)
	}
}
