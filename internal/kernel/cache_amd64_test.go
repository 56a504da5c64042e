//go:build !noasm

package kernel

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

func TestDataCache(t *testing.T) {
	number := func(index int, name, unit string) int {
		text, err := os.ReadFile(fmt.Sprintf("/sys/devices/system/cpu/cpu0/cache/index%d/%s", index, name))
		if err != nil {
			t.Skip("this system doesn't tell its caches")
		}
		n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(string(text)), unit))
		if err != nil {
			t.Skipf("the %s %q isn't a number of %q", name, text, unit)
		}
		return n
	}
	for level, index := range map[uint32]int{1: 0, 2: 2} {
		want, wantWays := number(index, "size", "K")<<10, number(index, "ways_of_associativity", "")
		if size, ways := dataCache(level); size != want || ways != wantWays {
			t.Errorf("cache %d has %d bytes and %d ways, want %d and %d", level, size, ways, want, wantWays)
		}
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
