package main

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestWords compares the comment beside each word of the generated assembly with a disassembler's text.
func TestWords(t *testing.T) {
	const disassembler = "aarch64-linux-gnu-objdump"
	if _, err := exec.LookPath(disassembler); err != nil {
		t.Skipf("this test needs %s (Debian's package binutils-aarch64-linux-gnu): %v", disassembler, err)
	}
	var w writer
	gemm(&w)
	vector(&w)
	int8(&w)
	var code []byte
	var want []string
	for _, m := range regexp.MustCompile(`WORD \$(0x[0-9a-f]{8}) // (.*)`).FindAllStringSubmatch(w.String(), -1) {
		word, err := strconv.ParseUint(m[1], 0, 32)
		if err != nil {
			t.Fatal(err)
		}
		code, want = binary.LittleEndian.AppendUint32(code, uint32(word)), append(want, m[2])
	}
	if n := strings.Count(w.String(), "WORD"); n == 0 || n != len(want) {
		t.Fatalf("%d of %d words have a comment, want all and at least one", len(want), n)
	}
	file := filepath.Join(t.TempDir(), "words")
	if err := os.WriteFile(file, code, 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := exec.Command(disassembler, "-D", "-b", "binary", "-m", "aarch64", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	got := regexp.MustCompile(`(?m)^ +[0-9a-f]+:\t([0-9a-f]{8}) \t(.*)$`).FindAllStringSubmatch(string(text), -1)
	if len(got) != len(want) {
		t.Fatalf("the disassembler found %d instructions, want %d", len(got), len(want))
	}
	for i, m := range got {
		if text := strings.ReplaceAll(m[2], "\t", " "); text != want[i] {
			t.Errorf("the word 0x%s is %q, but its comment is %q", m[1], text, want[i])
		}
	}
}
