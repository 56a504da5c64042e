package pretrained

import (
	"runtime/debug"
	"testing"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // collecting the garbage of tiny graphs takes as long as computing them
	m.Run()
}
