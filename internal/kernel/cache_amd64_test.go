//go:build !noasm

package kernel

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

func TestSecondCache(t *testing.T) {
	text, err := os.ReadFile("/sys/devices/system/cpu/cpu0/cache/index2/size")
	if err != nil {
		t.Skip("this system doesn't tell the size of the second cache")
	}
	want, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(string(text)), "K"))
	if err != nil {
		t.Skipf("the size %q has another form than 1024K", text)
	}
	if got := secondCache(); got != want<<10 {
		t.Errorf("the second cache has %d bytes, want %d", got, want<<10)
	}
}

func TestGemmBand(t *testing.T) {
	for _, c := range []struct{ cache, height, rowBytes, want int }{
		{1 << 20, 9, 2048, 252},
		{1280 << 10, 9, 2048, 315},
		{0, 9, 2048, 90},
		{1 << 30, 6, 1024, 318},
	} {
		if got := gemmBand(c.cache, c.height, c.rowBytes); got != c.want {
			t.Errorf("gemmBand(%d, %d, %d) = %d, want %d", c.cache, c.height, c.rowBytes, got, c.want)
		}
	}
}
