package pretrained

import (
	"runtime/debug"
	"testing"

	"github.com/heed-go/heed/internal/testseed"
)

func TestMain(m *testing.M) {
	testseed.KeepInMemory()
	debug.SetGCPercent(400) // collecting the garbage of tiny graphs takes as long as computing them
	m.Run()
}
