package npy

import (
	"encoding/binary"
	"strings"
	"testing"
)

func TestHeader(t *testing.T) {
	for _, comment := range []string{"", "# a comment", "# " + strings.Repeat("long ", 60) + "end"} {
		h := Header(12, 345, comment)
		size := int(binary.LittleEndian.Uint16([]byte(h[8:])))
		if len(h)%64 != 0 || size != len(h)-10 || strings.Index(h, "\n") != len(h)-1 {
			t.Errorf("%q has %d bytes, and says %d", h, len(h), size)
		}
		if !strings.HasPrefix(h[10:], "{'descr': '<f4', 'fortran_order': False, 'shape': (12, 345), } "+comment) {
			t.Errorf("got %q", h)
		}
	}
}
