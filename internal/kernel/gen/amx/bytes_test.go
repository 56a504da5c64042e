package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestBytes compares the comment beside the bytes of each instruction with a disassembler's text.
func TestBytes(t *testing.T) {
	const disassembler = "objdump"
	if _, err := exec.LookPath(disassembler); err != nil {
		t.Skipf("this test needs %s (Debian's package binutils): %v", disassembler, err)
	}
	if help, _ := exec.Command(disassembler, "--help").CombinedOutput(); !strings.Contains(string(help), "x86-64") {
		t.Skipf("this test needs an %s that knows x86-64", disassembler)
	}
	var w writer
	w.tile(3)
	w.tile(1)
	w.along()
	w.across()
	var code []byte
	var want []string
	for _, m := range regexp.MustCompile(`(?m)^\t(BYTE .*) // (.*)$`).FindAllStringSubmatch(w.String(), -1) {
		for _, b := range strings.Split(m[1], "; ") {
			value, err := strconv.ParseUint(strings.TrimPrefix(b, "BYTE $"), 0, 8)
			if err != nil {
				t.Fatal(err)
			}
			code = append(code, byte(value))
		}
		want = append(want, m[2])
	}
	if len(want) == 0 {
		t.Fatal("no bytes with a comment")
	}
	file := filepath.Join(t.TempDir(), "bytes")
	if err := os.WriteFile(file, code, 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := exec.Command(disassembler, "-D", "-w", "-b", "binary", "-m", "i386:x86-64", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	got := regexp.MustCompile(`(?m)^ +[0-9a-f]+:\t([0-9a-f ]+?) *\t(.*)$`).FindAllStringSubmatch(string(text), -1)
	if len(got) != len(want) {
		t.Fatalf("the disassembler found %d instructions, want %d", len(got), len(want))
	}
	for i, m := range got {
		if text := strings.TrimSpace(m[2]); text != want[i] {
			t.Errorf("the bytes %s are %q, but their comment is %q", m[1], text, want[i])
		}
	}
}
